// Timed steps, of which each may fail without ending the others, and a table of them.

import { table } from "../../conformance/table.mjs";

export class Report {
  #rows = [];
  #failed = false;

  /** Does one step, and gives what it gives: the milliseconds that count, if not all do. */
  async step(name, body) {
    const began = performance.now();
    try {
      const counted = (await body()) ?? performance.now() - began;
      this.#rows.push([name, seconds(counted), "passed"]);
      return counted;
    } catch (error) {
      this.#failed = true;
      this.#rows.push([name, seconds(performance.now() - began), "FAILED"]);
      console.log(`${name}: ${error.message}`);
      return 0;
    }
  }

  /** Prints the table, and says whether all steps passed. */
  print() {
    console.log(table(["step", "time", "result"], this.#rows));
    return !this.#failed;
  }
}

function seconds(milliseconds) {
  return `${(milliseconds / 1000).toFixed(2)} s`;
}
