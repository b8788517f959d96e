// Serves a scripted model until standard input is closed, and prints its URL: see peers/gateway/model.mjs.
//
//   node peers/agents/serve_model.mjs '[{"tool": "get_current_time$", "args": {"timezone": "UTC"}}]'

import { startModel } from "../gateway/model.mjs";

const plan = JSON.parse(process.argv[2]).map(({ tool, args }) => ({ tool: new RegExp(tool), args }));
const model = await startModel(plan);
console.log(model.url);
process.stdin.resume();
process.stdin.once("end", () => model.close());
