#!/usr/bin/env bash
# Goes through the eleven calls of the operator's desk with curl, as an operator would, on a Redrive that has at least two open
# dead letters. Says what it does on stderr and ends with 1 at the first answer that is not the expected one.
#
#   REDRIVE_URL=http://127.0.0.1:3000 REDRIVE_TOKEN=… scripts/eleven.sh
set -euo pipefail

url="${REDRIVE_URL:-http://127.0.0.1:3000}/api/queue-admin"
token="${REDRIVE_TOKEN:?set REDRIVE_TOKEN to a token with the scope admin}"
answer=''

# call <expected status> <method> <path> [<json>]: leaves the body in $answer.
call() {
  local expected="$1" method="$2" path="$3" body="${4:-}" status
  local send=(-s -S -X "$method" -H "authorization: Bearer $token" -w '\n%{http_code}')
  if [ -n "$body" ]; then send+=(-H 'content-type: application/json' -d "$body"); fi
  answer="$(curl "${send[@]}" "$url$path")"
  status="${answer##*$'\n'}"
  answer="${answer%$'\n'*}"
  echo "$method $path → $status" >&2
  if [[ ! "$status" =~ ^($expected)$ ]]; then
    echo "expected $expected: $answer" >&2
    exit 1
  fi
}

# The first value of a field of $answer.
field() { grep -o "\"$1\":\"[^\"]*\"" <<<"$answer" | head -n 1 | cut -d '"' -f 4; }

# What is there?
call 200 GET /statistics
call 200 GET '/dead-letter-queue?status=pending&limit=2'
ids=($(grep -o '"id":"[^"]*"' <<<"$answer" | cut -d '"' -f 4))
if [ "${#ids[@]}" -lt 2 ]; then
  echo 'there are fewer than two open dead letters' >&2
  exit 1
fi

# Why did it die?
call 200 GET "/dead-letter-queue/${ids[0]}"
queue="$(field queue)"

# Hold the queue while it is looked into, and say who looks.
call 200 POST "/queues/$queue/pause" '{"reason":"looking into it"}'
call 200 PUT "/dead-letter-queue/${ids[0]}/notes" '{"notes":"the other side was down","assignedTo":"ada","priority":8}'

# One is worth another try, once; the other is not.
call 200 POST "/dead-letter-queue/${ids[0]}/retry" '{"reason":"it is back"}'
call 409 POST "/dead-letter-queue/${ids[0]}/retry"
call 200 POST "/dead-letter-queue/${ids[1]}/mark-failed" '{"reason":"done by hand"}'

# Go on, tidy up, and make sure that nothing was left behind.
call 200 POST "/queues/$queue/resume"
call 200 POST "/queues/$queue/clean" '{"grace":86400000,"status":"completed"}'
call '200|202' POST /trigger-recovery
call 200 GET /recovery-status
echo "$answer"
