// Runs timed steps, continues after a step that fails, and prints a table of all steps.

import { table } from "../../conformance/table.mjs";

export class Report {
  #rows = [];
  #failed = false;

  /** Runs one step. If `body` returns a number of milliseconds, that is reported as the step's time. */
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
