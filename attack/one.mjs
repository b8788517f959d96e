// Runs one attack in a process of its own. The parent sends the name of its file and the place; it is
// sent what the attack found, or the fault.

process.once("message", async ({ file, place }) => {
  let outcome;
  try {
    const { attack } = await import(`./attacks/${file}`);
    outcome = { note: (await attack(place)) ?? "" };
  } catch (error) {
    outcome = { fault: `${error.message}${error.cause ? ` (${error.cause.message})` : ""}` };
  }
  // Open connections must not keep the process.
  process.send(outcome, () => process.exit(0));
});
