"""Makes the packages of Plexus from its program. Only Python's standard library is used."""
