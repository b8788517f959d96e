// Runs the steps of a walk: prints a line for each, and exits at the first step that fails.

const STEP_LIMIT = 15_000;

/** Runs one step and prints its outcome. A step that exceeds the timeout fails. */
export async function step(name, body) {
  let timer;
  const timeout = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`still waiting after ${STEP_LIMIT / 1000} s`)), STEP_LIMIT);
  });
  try {
    await Promise.race([body(), timeout]);
  } catch (error) {
    console.log(`FAILED ${name}: ${error?.stack ?? error}`);
    process.exit(1);
  } finally {
    clearTimeout(timer);
  }
  console.log(`ok ${name}`);
}

/** The items that a peer has received. Steps can wait for a number of items. */
export class Inbox {
  #items = [];
  #waiting = [];

  push(item) {
    this.#items.push(item);
    this.#waiting = this.#waiting.filter(({ count, resolve }) => this.#items.length < count || resolve());
  }

  /** Removes all items, and returns them. */
  clear() {
    return this.#items.splice(0);
  }

  /** Waits for at least `count` items, and returns all items. */
  async atLeast(count) {
    if (this.#items.length < count) {
      await new Promise((resolve) => this.#waiting.push({ count, resolve }));
    }
    return [...this.#items];
  }
}
