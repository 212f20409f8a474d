"""Which requests scripts/api.py does not make."""

import urllib.parse

import schemathesis

# Of a URL with more bytes, the HTTP library refuses the first line by itself: 414, and nothing that the API could say about it. The server
# says itself what is wrong with URLs of more than 16 KiB, which stays tested.
URL_BYTES_MAX = 60_000


@schemathesis.hook
def filter_query(context, query):
    return len(urllib.parse.urlencode(query or {}, doseq=True)) < URL_BYTES_MAX
