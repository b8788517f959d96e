//! The servers of the samples, as they are translated.

use crate::clients::Client;

/// Its name, its definition, and the keys that are left out.
type Server = (&'static str, &'static str, &'static str);

/// All servers of the sample of each client.
pub(super) const SERVERS: &[(Client, &[Server])] = &[
    (
        Client::ClaudeCode,
        &[
            (
                "github",
                r#"{"type":"http","url":"https://api.example.com/mcp/","headers":{"Authorization":"Bearer ${GITHUB_TOKEN}"},"oauth":{"clientId":"abc","callbackPort":8080}}"#,
                "",
            ),
            (
                r#"café "A""#,
                r#"{"type":"stdio","command":"/opt/caf\u00e9/serve","args":["--menu","caf\u00e9\/\ud83c\udf70",""],"env":{"PORT":8080,"VERBOSE":true,"EMPTY":"","UNSET":null}}"#,
                "x-limits",
            ),
            (
                "events",
                r#"{"type":"sse","url":"https://events.example.com/sse"}"#,
                "",
            ),
            (
                "db",
                r#"{"type":"stdio","command":"npx","args":["-y","mcp-postgres","postgresql://localhost/shop"],"env":{}}"#,
                "",
            ),
        ],
    ),
    (
        Client::ClaudeDesktop,
        &[
            (
                "filesystem",
                r#"{"command":"npx","args":["-y","@modelcontextprotocol/server-filesystem","/home/ada/Documents"]}"#,
                "",
            ),
            (
                "memory",
                r#"{"command":"docker","args":["run","-i","--rm","mcp/memory"],"env":{"MEMORY_FILE":"/data/memory.json"}}"#,
                "future",
            ),
        ],
    ),
    (
        Client::Cursor,
        &[
            (
                "local",
                r#"{"type":"stdio","command":"python","args":["${PWD:-.}/tools/server.py","${HOME}/data"],"env":{"API_KEY":"${API_KEY}"},"env_file":".env"}"#,
                "",
            ),
            (
                "remote",
                r#"{"url":"https://mcp.example.com/${TENANT}","headers":{"X-Key":"${REMOTE_KEY}"},"oauth":{"clientId":"${ID}"}}"#,
                "auth.scopes auth.redirect",
            ),
        ],
    ),
    (
        Client::VsCode,
        &[
            (
                "perplexity",
                r#"{"type":"stdio","command":"npx","args":["-y","server-perplexity"],"env":{"PERPLEXITY_API_KEY":"${PERPLEXITY_KEY}","AGAIN":"x${PERPLEXITY_KEY}","N":"${_2ND}"}}"#,
                "dev",
            ),
            (
                "fetch",
                r#"{"type":"http","url":"https://example.com/mcp"}"#,
                "gallery version",
            ),
            (
                "odd",
                r#"{"command":"serve","env":{"PORT":8080,"DEBUG":false,"HTTP_PROXY":null}}"#,
                "sandboxEnabled sandbox",
            ),
        ],
    ),
    (
        Client::Windsurf,
        &[
            (
                "remote",
                r#"{"url":"https://example.com/mcp","headers":{"API_KEY":"Bearer ${AUTH_TOKEN}"},"disabled":true,"deny":["delete_*"]}"#,
                "alwaysAllow",
            ),
            (
                "figma",
                r#"{"command":"npx","args":["-y","figma-developer-mcp","--stdio"],"env":{"FIGMA_API_KEY":"${FIGMA_API_KEY}"}}"#,
                "serverURL registry",
            ),
        ],
    ),
    (
        Client::Codex,
        &[
            (
                "docs",
                r#"{"args":["-y","docs-server"],"command":"npx","deny":["delete"],"disabled":true,"allow":["search"],"env":{"API_KEY":"value"},"startup_timeout":20,"timeout_ms":2500}"#,
                "tools",
            ),
            (
                "figma",
                r#"{"headers":{"X-Region":"eu","X-Team":"${FIGMA_TEAM}","Authorization":"Bearer ${FIGMA_TOKEN}"},"oauth":{"callbackPort":4242,"clientId":"abc"},"startup_timeout":1.5,"url":"https://mcp.example.com/mcp"}"#,
                "future scopes",
            ),
            (
                "with.dots and spaces",
                r#"{"args":["--once","many\nlines"],"command":"/opt/tools/serve","cwd":"/opt/tools"}"#,
                "most price since",
            ),
        ],
    ),
    (
        Client::Gemini,
        &[
            (
                "python",
                r#"{"command":"python","args":["-m","server","--port","${PORT}"],"cwd":"./tools","env":{"DATABASE_URL":"${DB_URL}","PRICE":"5$","KEY":"${KEY}"},"timeout_ms":15000,"trusted":true,"allow":["safe_tool"],"deny":["drop"]}"#,
                "",
            ),
            (
                "stream",
                r#"{"headers":{"Authorization":"Bearer ${TOKEN}"},"url":"https://example.com/mcp","type":"http","disabled":true}"#,
                "",
            ),
            (
                "events",
                r#"{"url":"https://example.com/sse","type":"sse","disabled":true}"#,
                "",
            ),
            (
                "cloud",
                r#"{"oauth":{},"url":"https://example.com/cloud","type":"http","disabled":true}"#,
                "authProviderType oauth.scopes description",
            ),
            (
                "both",
                r#"{"url":"https://example.com/mcp","type":"http","disabled":true}"#,
                "",
            ),
        ],
    ),
    (
        Client::Zed,
        &[
            (
                "postgres",
                r#"{"disabled":true,"command":"npx","args":["-y","mcp-postgres","postgresql://localhost/shop"],"env":{"PGAPPNAME":"zed"},"timeout_ms":90000}"#,
                "remote",
            ),
            (
                "older",
                r#"{"command":"/opt/serve","args":["--stdio"],"env":{}}"#,
                "settings",
            ),
            (
                "web",
                r#"{"url":"https://mcp.example.com/mcp","headers":{"X-Team":"shop"},"oauth":{"clientId":"abc","clientSecret":"hunter2"}}"#,
                "",
            ),
            ("context7", "{}", "settings"),
        ],
    ),
    (
        Client::OpenCode,
        &[
            (
                "everything",
                r#"{"type":"stdio","command":"npx","env":{"TOKEN":"{file:~/.token}","PLAIN":"{}"},"cwd":"tools","startup_timeout":7.5,"args":["-y","server-everything","--key","${EVERYTHING_KEY}"]}"#,
                "",
            ),
            (
                "jira",
                r#"{"type":"http","url":"https://jira.example.com/mcp","disabled":true,"headers":{"Authorization":"Bearer ${JIRA_TOKEN}"},"oauth":{"clientId":"${JIRA_CLIENT}","clientSecret":"hunter2","callbackPort":19876}}"#,
                "oauth.scope oauth.redirectUri",
            ),
            (
                "keyed",
                r#"{"type":"http","url":"https://example.com/mcp"}"#,
                "oauth",
            ),
        ],
    ),
    (
        Client::Goose,
        &[
            ("developer", r#"{"timeout_ms":300000,"type":"builtin"}"#, ""),
            ("todo", r#"{"type":"platform"}"#, ""),
            (
                "filesystem",
                r#"{"type":"stdio","command":"npx","args":["-y","@modelcontextprotocol/server-filesystem","/srv/shop"],"env":{"LOG_LEVEL":"info","FS_TOKEN":"${FS_TOKEN}"},"timeout_ms":300000,"allow":["read_file"]}"#,
                "description",
            ),
            (
                "remote-tools",
                r#"{"type":"http","disabled":true,"url":"https://example.com/mcp","headers":{"X-Region":"eu","Authorization":"Bearer ${REMOTE_TOKEN}"}}"#,
                "",
            ),
            (
                "events",
                r#"{"type":"sse","url":"https://example.com/sse"}"#,
                "",
            ),
        ],
    ),
    (
        Client::Cline,
        &[
            (
                "local",
                r#"{"command":"node","args":["/srv/server.js"],"env":{"API_KEY":"${CLINE_KEY}"},"disabled":false,"timeout_ms":120000}"#,
                "alwaysAllow autoApprove",
            ),
            (
                "events",
                r#"{"url":"https://example.com/sse","disabled":true,"type":"sse"}"#,
                "",
            ),
            (
                "stream",
                r#"{"type":"streamableHttp","url":"https://example.com/mcp","headers":{"Authorization":"Bearer hunter2"}}"#,
                "",
            ),
            (
                "before",
                r#"{"url":"https://example.com/before","type":"http"}"#,
                "",
            ),
        ],
    ),
    (
        Client::CopilotCli,
        &[
            (
                "playwright",
                r#"{"type":"stdio","command":"npx","args":["@playwright/mcp@latest"],"env":{"TOKEN":"${PLAYWRIGHT_TOKEN}"}}"#,
                "",
            ),
            (
                "context7",
                r#"{"type":"http","url":"https://mcp.context7.com/mcp","headers":{"CONTEXT7_API_KEY":"hunter2"},"allow":["resolve-library-id"],"timeout_ms":20000,"oauth":{"clientId":"abc"}}"#,
                "oauthPublicClient",
            ),
            (
                "silent",
                r#"{"type":"sse","url":"https://example.com/sse","deny":["*"]}"#,
                "",
            ),
        ],
    ),
    (
        Client::Continue,
        &[
            (
                "SQLite MCP",
                r#"{"command":"npx","args":["-y","mcp-sqlite","/srv/shop.db"],"env":{"TOKEN":"${SQLITE_TOKEN}"},"cwd":"/srv","startup_timeout":5}"#,
                "faviconUrl",
            ),
            (
                "web",
                r#"{"type":"streamable-http","url":"https://example.com/mcp","headers":{"Authorization":"Bearer ${WEB_TOKEN}"}}"#,
                "requestOptions.timeout",
            ),
        ],
    ),
    (
        Client::Junie,
        &[
            (
                "files",
                r#"{"command":"npx","args":["-y","server-files","/srv"],"env":{"LEVEL":"1"}}"#,
                "",
            ),
            (
                "web",
                r#"{"url":"https://example.com/mcp","headers":{"X-Team":"shop"}}"#,
                "",
            ),
        ],
    ),
    (
        Client::Kiro,
        &[
            (
                "search",
                r#"{"command":"uvx","args":["server-search"],"env":{"KEY":"${SEARCH_KEY}"},"disabled":true,"deny":["purge"]}"#,
                "autoApprove",
            ),
            (
                "web",
                r#"{"url":"https://example.com/mcp","headers":{"Authorization":"Bearer ${WEB_TOKEN}"},"oauth":{"clientId":"abc"}}"#,
                "oauthScopes",
            ),
        ],
    ),
    (
        Client::QwenCode,
        &[
            (
                "python",
                r#"{"command":"python","args":["-m","server"],"env":{"URL":"${DB_URL}"},"timeout_ms":15000,"startup_timeout":60.5,"trusted":true,"allow":["read"]}"#,
                "versionNegotiation",
            ),
            (
                "flaky-remote",
                r#"{"oauth":{"clientId":"abc"},"url":"https://example.com/mcp","type":"http","disabled":true}"#,
                "oauth.redirectUri oauth.scopes",
            ),
            ("socket", r#"{"command":"serve"}"#, "tcp"),
        ],
    ),
    (
        Client::Amp,
        &[
            (
                "browser",
                r#"{"command":"npx","args":["-y","server-browser"],"allow":["navigate_*"]}"#,
                "",
            ),
            (
                "web",
                r#"{"url":"https://example.com/mcp","headers":{"Authorization":"Bearer ${AMP_TOKEN}"}}"#,
                "",
            ),
        ],
    ),
    (
        Client::LmStudio,
        &[
            (
                "hf",
                r#"{"url":"https://example.com/mcp","headers":{"Authorization":"Bearer hunter2"}}"#,
                "",
            ),
            (
                "local",
                r#"{"command":"npx","args":["-y","server-local"],"env":{"HOME_FOLDER":"${HOME}"}}"#,
                "",
            ),
        ],
    ),
    (
        Client::Warp,
        &[
            (
                "files",
                r#"{"command":"npx","args":["-y","server-files","."],"cwd":"/srv/shop"}"#,
                "",
            ),
            (
                "web",
                r#"{"url":"http://localhost:4000/mcp","headers":{"X-Team":"shop"}}"#,
                "",
            ),
        ],
    ),
];
