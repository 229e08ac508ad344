#!/bin/sh
# Publish and read over HTTP with curl. Needs URL and TOKEN in the environment.
set -eu

ask() {
    curl -sS --fail-with-body -H "Authorization: Bearer $TOKEN" "$@"
    echo
}

echo "one event, then two more as lines, each confirmed when it is on disk:"
ask "$URL/v1/topics/orders/events" \
    -H "Content-Type: application/json" \
    -d '{"payload": {"item": "tea", "price": 4.50}, "id": "o-1", "key": "ann"}'
printf '%s\n' '{"payload": {"item": "milk", "price": 1.20}, "id": "o-2"}' \
    '{"payload": {"item": "cake", "price": 6}, "id": "o-3"}' |
    ask "$URL/v1/topics/orders/events" -H "Content-Type: application/x-ndjson" \
        --data-binary @-

echo "what costs more than 4:"
ask "$URL/v1/topics/orders/events?search=price%3E4" |
    sed 's/"timestamp":[0-9]*/"timestamp":…/g; s/},{"topic"/},\n {"topic"/g'

echo "a worker pulls two of them:"
ask "$URL/v1/subscriptions/worker/orders/pull" \
    -H "Content-Type: application/json" -d '{"start": "earliest", "max": 2}' |
    grep -o '"offset":[0-9]*\|"tries":[0-9]*' | paste -sd " " -

echo "and says that it has handled the first:"
ask "$URL/v1/subscriptions/worker/orders/pull" \
    -H "Content-Type: application/json" -d '{"ack": [0], "max": 0}'
