#!/usr/bin/env bash
# An agent for tests. It speaks the stream of JSON that Claude Code speaks; what it does is what it
# is asked. Its arguments are noted in the folder that it works in.
printf '%s\n' "$@" >arguments
query=$(cat)

say() { printf '%s\n' "$1"; }
id=conversation-$RANDOM$RANDOM
for argument in "$@"; do
  case $argument in --resume=*) id=${argument#--resume=} ;; esac
done
for argument in "$@"; do
  case $argument in --fork-session) id=$id-fork ;; esac
done

start() { say '{"type":"system","subtype":"init","session_id":"'"$id"'","model":"scripted","tools":[]}'; }
piece() { say '{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"'"$1"'"}}}'; }
whole() { say '{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"'"$1"'"}]},"session_id":"'"$id"'"}'; }
result() { say '{"num_turns":2,"total_cost_usd":0.25,"duration_ms":12,"is_error":false,"subtype":"success","result":"ok","session_id":"'"$id"'","type":"result"}'; }

case $query in
  hello)
    start
    piece Hel
    piece lo
    whole Hello
    result
    ;;
  whole)
    start
    whole 'All at once'
    result
    ;;
  silent)
    start
    result
    ;;
  tools)
    start
    piece 'Let me look. '
    whole 'Let me look. '
    say '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}'
    say '{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a.txt","is_error":false}]}}'
    say '{"type":"user","message":{"role":"user","content":"only text"}}'
    piece 'There is a.txt.'
    whole 'There is a.txt.'
    result
    ;;
  junk)
    say 'Warning: this is no JSON'
    start
    say '{"type":'
    say '{"no":"type"}'
    say '{"type":"of_the_future","x":1}'
    printf '\n\xff\n'
    whole fine
    result
    ;;
  fail)
    start
    echo 'first line' >&2
    echo 'Invalid API key' >&2
    exit 3
    ;;
  refused)
    start
    say '{"type":"result","subtype":"error_max_turns","is_error":true,"num_turns":1,"session_id":"'"$id"'"}'
    exit 1
    ;;
  wait)
    start
    piece waiting
    until [ -e go ]; do sleep 0.01; done
    whole waiting
    result
    ;;
  hang)
    start
    trap '' TERM
    sleep 1000 &
    piece "$$ $!"
    wait
    sleep 1000
    ;;
  permit)
    start
    for argument in "$@"; do
      case $argument in --mcp-config=*) config=${argument#--mcp-config=} ;; esac
    done
    url=$(grep -o 'http://[^"]*' "$config")
    stat -c %a "$config" >mode
    rest=${url#http://}
    address=${rest%%/*}
    body='{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"loopback_permit","arguments":{"tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t1"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'
    exec 3<>"/dev/tcp/${address%:*}/${address#*:}"
    printf 'POST /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: loopback_permit\r\nContent-Length: %s\r\n\r\n%s' \
      "${rest#*/}" "$address" "${#body}" "$body" >&3
    cat <&3 >answer
    whole "$(grep -o 'behavior[^,]*' answer | tr -d '\\"')"
    result
    ;;
  *)
    start
    whole "what is $query?"
    result
    ;;
esac
