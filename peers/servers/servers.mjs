// The servers that are visited: how each is started, and its known offer.
//
// `stdio` or `http` or `sse`  how it is reached: a program to start, and for the latter two also the path of its URL
// `era`                       the era to use; by default it is detected
// `capabilities`              the client capabilities to declare; otherwise none
// `finds`                     the expected findings of the visit; omitted ones must be none
// `call`, `answer`            the tool to call, and how the call must end

import { join } from "node:path";

import { root } from "../../conformance/fixture.mjs";

const tools = join(root, ".tools");
const echoes = join(root, "peers", "servers", "echo");

const node = join(tools, "bin", "node");
const npm = (name) => join(tools, "peers", "node_modules", ".bin", name);
const python = (name) => join(tools, "python", "bin", name);
const python1 = (name) => join(tools, "python-sdk1", "bin", name);

const HANDSHAKE = "2025-11-25";
const STATELESS = "2026-07-28";

const refusing = (code) => {
  const quirks = [`RefusesDiscover { code: ${code} }`];
  return (found) => ({ revision: HANDSHAKE, quirks, ...found });
};
const legacy = refusing(-32601);
const legacyHttp = refusing(-32000);
const legacyPython = refusing(-32602);

const echo = { call: ["echo", { text: "hello" }], answer: { text: /^echo: hello$/ } };
const everything = { call: ["echo", { message: "hello" }], answer: { text: /^Echo: hello$/ } };
const time = { call: ["get_current_time", { timezone: "Europe/Berlin" }], answer: { text: /Europe\/Berlin/ } };
// It searches on the web; without a network it answers with an error.
const context7 = {
  call: ["resolve-library-id", { query: "react", libraryName: "react" }],
  answer: { text: /Error searching libraries|Context7/ },
};
const memory = { call: ["read_graph", {}], answer: { text: /"entities": \[\]/ } };

/** All servers. A visit may write to `folder`; `port` is free, and `page` is the URL of a web page. */
export const servers = ({ folder, port, page }) => [
  {
    name: "everything",
    stdio: { command: npm("mcp-server-everything"), args: ["stdio"] },
    finds: legacy({ tools: 13, resources: 7, templates: 2, prompts: 4 }),
    ...everything,
  },
  {
    name: "everything, asking",
    stdio: { command: npm("mcp-server-everything"), args: ["stdio"] },
    capabilities: { roots: {}, sampling: {}, elicitation: { form: {}, url: {} } },
    finds: legacy({ tools: 17, resources: 7, templates: 2, prompts: 4 }),
    call: ["trigger-sampling-request", { prompt: "hello", maxTokens: 10 }],
    answer: { text: /the visitor's model says hello/ },
  },
  {
    name: "everything http",
    http: { command: npm("mcp-server-everything"), args: ["streamableHttp"], env: { PORT: port }, path: "/mcp" },
    finds: legacyHttp({ tools: 13, resources: 7, templates: 2, prompts: 4 }),
    ...everything,
  },
  {
    // S001-70
    name: "everything sse",
    sse: { command: npm("mcp-server-everything"), args: ["sse"], env: { PORT: port }, path: "/sse" },
    finds: { revision: HANDSHAKE, tools: 13, resources: 7, templates: 2, prompts: 4 },
    ...everything,
  },
  {
    name: "everything sse, found out",
    http: { command: npm("mcp-server-everything"), args: ["sse"], env: { PORT: port }, path: "/sse" },
    finds: { revision: HANDSHAKE, tools: 13, resources: 7, templates: 2, prompts: 4, quirks: ["SseOnly"] },
    ...everything,
  },
  {
    // If the client has roots, the server asks for them, and would use them instead of its argument.
    // S001-69, S004-66
    name: "filesystem",
    stdio: { command: npm("mcp-server-filesystem"), args: [folder] },
    capabilities: { roots: {} },
    finds: legacy({ tools: 14 }),
    call: ["list_allowed_directories", {}],
    answer: { text: new RegExp(`^Allowed directories:\n${folder}$`) },
  },
  {
    name: "memory",
    stdio: { command: npm("mcp-server-memory"), env: { MEMORY_FILE_PATH: join(folder, "memory.jsonl") } },
    finds: legacy({ tools: 9, resources: 1 }),
    ...memory,
  },
  {
    // Like many launchers, the shell starts the server as a child and does not forward signals to it.
    name: "memory, launched by sh",
    stdio: {
      command: "/bin/sh",
      args: ["-c", '"$@"; exit $?', "launcher", npm("mcp-server-memory")],
      env: { MEMORY_FILE_PATH: join(folder, "memory.jsonl") },
    },
    finds: legacy({ tools: 9, resources: 1 }),
    ...memory,
  },
  {
    name: "memory, launched by npx",
    stdio: {
      command: "npx",
      args: ["--no", "--", "mcp-server-memory"],
      env: { MEMORY_FILE_PATH: join(folder, "memory.jsonl"), npm_config_update_notifier: "false" },
      cwd: join(tools, "peers"),
    },
    finds: legacy({ tools: 9, resources: 1 }),
    ...memory,
  },
  {
    name: "sequential-thinking",
    stdio: { command: npm("mcp-server-sequential-thinking") },
    finds: legacy({ tools: 1 }),
    call: ["sequentialthinking", { thought: "One.", thoughtNumber: 1, totalThoughts: 1, nextThoughtNeeded: false }],
    answer: { text: /"thoughtHistoryLength": \d/ },
  },
  {
    // Without a database, the server works, except for requests that need the database.
    name: "postgres, no database",
    stdio: { command: npm("mcp-server-postgres"), args: ["postgres://127.0.0.1:1/none"] },
    finds: legacy({
      revision: "2024-11-05",
      reason: /resources cannot be listed: connect ECONNREFUSED/,
      tools: 1,
      listProblems: ['Failed { section: Resources, reason: "connect ECONNREFUSED 127.0.0.1:1 (code -32603)" }'],
    }),
    call: ["query", { sql: "select 1" }],
    answer: { fault: /ECONNREFUSED/ },
  },
  {
    name: "context7",
    ...context7,
    stdio: { command: npm("context7-mcp") },
    finds: { revision: STATELESS, tools: 2 },
  },
  {
    name: "context7 http",
    ...context7,
    http: { command: npm("context7-mcp"), args: ["--transport", "http", "--port", port], path: "/mcp" },
    finds: { revision: STATELESS, tools: 2 },
  },
  {
    // C37: it declares tools but cannot list them offline.
    name: "supabase, no network",
    stdio: { command: npm("mcp-server-supabase"), args: ["--access-token=x", "--api-url=http://127.0.0.1:1"] },
    finds: {
      revision: STATELESS,
      reason: /tools cannot be listed: fetch failed/,
      listProblems: ['Failed { section: Tools, reason: "fetch failed (code -32603)" }'],
    },
  },
  {
    name: "time",
    stdio: { command: python("mcp-server-time") },
    finds: { revision: STATELESS, tools: 2 },
    ...time,
  },
  {
    name: "time, handshake",
    stdio: { command: python("mcp-server-time") },
    era: "legacy",
    finds: { revision: HANDSHAKE, tools: 2 },
    ...time,
  },
  {
    name: "git",
    stdio: { command: python("mcp-server-git"), args: ["--repository", folder] },
    finds: { revision: STATELESS, tools: 12 },
    call: ["git_status", { repo_path: folder }],
    answer: { text: /^Repository status:/ },
  },
  {
    name: "fetch",
    stdio: { command: python("mcp-server-fetch"), args: ["--ignore-robots-txt", "--allow-private-ips"] },
    finds: { revision: STATELESS, tools: 1, prompts: 1 },
    call: ["fetch", { url: page, raw: true }],
    answer: { text: /a page to fetch/ },
  },
  {
    name: "sqlite",
    stdio: { command: python1("mcp-server-sqlite"), args: ["--db-path", join(folder, "visit.db")] },
    finds: legacyPython({ tools: 6, resources: 1, prompts: 1 }),
    call: ["read_query", { query: "select 6 * 7 as answer" }],
    answer: { text: /42/ },
  },
  {
    name: "typescript-1.32",
    stdio: { command: node, args: [join(echoes, "typescript1.mjs"), "stdio"] },
    finds: legacy({ tools: 1 }),
    ...echo,
  },
  {
    name: "typescript-1.32 http",
    http: { command: node, args: [join(echoes, "typescript1.mjs"), "http", port], path: "/mcp" },
    finds: legacyHttp({ tools: 1 }),
    ...echo,
  },
  {
    name: "typescript-2.4",
    stdio: { command: node, args: [join(echoes, "typescript2.mjs"), "stdio"] },
    finds: { revision: STATELESS, tools: 1 },
    ...echo,
  },
  {
    name: "typescript-2.4, handshake",
    stdio: { command: node, args: [join(echoes, "typescript2.mjs"), "stdio"] },
    era: "legacy",
    finds: { revision: HANDSHAKE, tools: 1 },
    ...echo,
  },
  {
    name: "typescript-2.4 http",
    http: { command: node, args: [join(echoes, "typescript2.mjs"), "http", port], path: "/mcp" },
    finds: { revision: STATELESS, tools: 1 },
    ...echo,
  },
  {
    name: "typescript-2.4 http, handshake",
    http: { command: node, args: [join(echoes, "typescript2.mjs"), "http", port], path: "/mcp" },
    era: "legacy",
    finds: { revision: HANDSHAKE, tools: 1 },
    ...echo,
  },
  {
    name: "python-2.3",
    stdio: { command: python("python"), args: [join(echoes, "python_sdk2.py"), "stdio"] },
    finds: { revision: STATELESS, tools: 1 },
    ...echo,
  },
  {
    name: "python-2.3, handshake",
    stdio: { command: python("python"), args: [join(echoes, "python_sdk2.py"), "stdio"] },
    era: "legacy",
    finds: { revision: HANDSHAKE, tools: 1 },
    ...echo,
  },
  {
    name: "python-2.3 http",
    http: { command: python("python"), args: [join(echoes, "python_sdk2.py"), "http", port], path: "/mcp" },
    finds: { revision: STATELESS, tools: 1 },
    ...echo,
  },
  {
    name: "python-2.3 http, handshake",
    http: { command: python("python"), args: [join(echoes, "python_sdk2.py"), "http", port], path: "/mcp" },
    era: "legacy",
    finds: { revision: HANDSHAKE, tools: 1 },
    ...echo,
  },
  {
    name: "python-1.30",
    stdio: { command: python1("python"), args: [join(echoes, "python_sdk1.py"), "stdio"] },
    finds: legacyPython({ tools: 1 }),
    ...echo,
  },
  {
    name: "python-1.30 http",
    http: { command: python1("python"), args: [join(echoes, "python_sdk1.py"), "http", port], path: "/mcp" },
    finds: { revision: HANDSHAKE, tools: 1 },
    ...echo,
  },
  {
    name: "python-1.30 sse",
    sse: { command: python1("python"), args: [join(echoes, "python_sdk1.py"), "sse", port], path: "/sse" },
    finds: { revision: HANDSHAKE, tools: 1 },
    ...echo,
  },
];
