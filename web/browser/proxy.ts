// The built pages with the answers of a true server: so pages are tested together with any command, also one that was built
// with older pages in it.

import { createServer, request as ask, type IncomingMessage, type ServerResponse } from "node:http";
import { readFileSync } from "node:fs";
import { extname, join } from "node:path";

const KINDS: Readonly<Record<string, string>> = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css" };

export interface Proxy {
  readonly url: string;
  end(): Promise<void>;
}

/** Serves `folder`, and everything of the API from `target`, which begins with `http://`. */
export async function proxied(folder: string, target: string): Promise<Proxy> {
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", target).pathname;
    if (path.startsWith("/api/")) {
      pass(target, request, response);
      return;
    }
    response.setHeader("Content-Type", KINDS[extname(path)] ?? "text/html; charset=utf-8");
    response.end(readFileSync(join(folder, path === "/" ? "index.html" : path)));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`,
    end: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

function pass(target: string, request: IncomingMessage, response: ServerResponse): void {
  const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => name !== "origin" && !name.startsWith("sec-fetch")));
  const passed = ask(new URL(request.url ?? "/", target), { method: request.method ?? "GET", headers: { ...headers, host: new URL(target).host } }, (answer) => {
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    answer.pipe(response);
  });
  passed.on("error", () => response.destroy());
  response.on("close", () => passed.destroy());
  request.pipe(passed);
}
