// The behaviours of the hostile server that the shared gateway is configured with.

/** How the tool `work` of hostile.mjs misbehaves. */
export const callBehaviours = [
  "endless-line",
  "huge-answer",
  "deep-answer",
  "not-json",
  "unknown-ids",
  "notifications",
  "changes",
  "questions",
  "standard-error",
  "dies-in-a-call",
];

/** Those, and how it misbehaves without a call. */
export const behaviours = [...callBehaviours, "endless-pages", "crash-loop"];
