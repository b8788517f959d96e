// Running a walk step by step: one line for each, and the end at the first that fails.

const STEP_LIMIT = 15_000;

/** Runs one step and prints its outcome. A step that hangs is a step that failed. */
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

/** What a peer has received so far, for steps that wait until enough has come. */
export class Inbox {
  #items = [];
  #waiting = [];

  push(item) {
    this.#items.push(item);
    this.#waiting = this.#waiting.filter(({ count, resolve }) => this.#items.length < count || resolve());
  }

  /** Forgets what was received, and gives it back. */
  clear() {
    return this.#items.splice(0);
  }

  /** Waits for at least `count` items, and gives all there are. */
  async atLeast(count) {
    if (this.#items.length < count) {
      await new Promise((resolve) => this.#waiting.push({ count, resolve }));
    }
    return [...this.#items];
  }
}
