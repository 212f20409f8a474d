// A stand-in of `kymo view`: it serves the built pages and an invented trace, with the headers that the true one sends.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { existsSync, readFileSync, statSync } from "node:fs";
import { extname, join, normalize } from "node:path";
import { encodeAnswer } from "../src/testing/tiles.ts";
import { answerItems } from "../src/testing/items.ts";
import { Listing } from "../src/testing/events.ts";
import { BEGIN, INVENTED, TOLD, SPAN, VALUES, answer, itemsOf } from "./invented.ts";
import { Office } from "./office.ts";
import { Pad } from "./pad.ts";
import { Recorder } from "./recorder.ts";

const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'";
const KINDS: Readonly<Record<string, string>> = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css" };
export const TOKEN = "0123456789abcdef0123456789abcdef";

/** Its answer before traces are open, and then. */
function started({ waiting }: StandIn): string {
  return JSON.stringify({ failure: null, problem: null, recent: [], record: [], sample: false, state: waiting === null ? "open" : "waiting", waiting, upload_bytes_max: 0 });
}

/** Nothing is wrong with it. */
export const NO_FINDINGS = JSON.stringify({ findings: [], losses: [], losses_omitted: 0 });

/** A server that runs, and the settings that tests change. */
export interface StandIn {
  readonly url: string;
  /** The problems of its trace. */
  findings: string;
  /** How much of the trace is read, from 0 to 1. */
  read: number;
  /** It answers questions for tiles with this status instead. */
  refusal: number | null;
  /** It answers questions for tiles so much later. */
  slowMs: number;
  /** Questions for tiles that were answered. */
  readonly asked: string[];
  /** How many nanoseconds of the trace were there when each of them was answered. */
  readonly grownWhenAsked: number[];
  /** It can tell of tracks of events how many of some events there are. */
  canFilter: boolean;
  /** How much of the trace is read for these, from 0 to 1. */
  filterRead: number;
  /** It answers questions for its description with this status instead, of which there were so many. */
  descriptionRefusal: number | null;
  askedDescription: number;
  /** Which server it says it is; `null`: it does not say. */
  instance: string | null;
  /** Questions for changes, and for the catalog. */
  listened: number;
  askedCatalogue: number;
  /** The catalog names no more values than these; `null`: all. */
  namedTo: number | null;
  /** The same of questions for items. */
  itemsRefusal: number | null;
  readonly askedItems: string[];
  /** The list of events, and questions about it. */
  readonly listing: Listing;
  readonly askedEvents: string[];
  /** Analyses, and the requests for them. */
  readonly office: Office;
  /** The file of notes. */
  readonly pad: Pad;
  /** The reason for which its trace waits; `null`: it is open. */
  waiting: string | null;
  /** A recorder writes the trace, of which so many nanoseconds are there; `null`: it does not grow. */
  live: "recording" | "ended" | null;
  grown: number;
  /** How old its newest event is, and how many events were lost, from when to when. */
  behindMs: number;
  lost: number;
  holes: (readonly [number, number])[];
  /** The recorder of the trace. */
  readonly recorder: Recorder;
  /** So much more of the trace is there. */
  grow(ns: number): void;
  tell(): void;
  /** It ends its messages; pages that listen ask again. */
  hangUp(): void;
  end(): Promise<void>;
}

/** Serves `folder` on a free port of this machine. */
export async function serve(folder: string): Promise<StandIn> {
  const listeners = new Set<ServerResponse>();
  const server = createServer((request, response) => handle(standIn, folder, listeners, request, response));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const standIn: StandIn = {
    url: `http://127.0.0.1:${portOf(server)}`,
    read: 1,
    refusal: null,
    slowMs: 0,
    asked: [],
    grownWhenAsked: [],
    canFilter: true,
    findings: NO_FINDINGS,
    filterRead: 1,
    descriptionRefusal: null,
    askedDescription: 0,
    instance: "one",
    listened: 0,
    askedCatalogue: 0,
    namedTo: null,
    itemsRefusal: null,
    askedItems: [],
    listing: new Listing(TOLD),
    askedEvents: [],
    office: new Office(),
    pad: new Pad(),
    waiting: null,
    live: null,
    grown: SPAN,
    behindMs: 312,
    lost: 0,
    holes: [],
    recorder: new Recorder(),
    grow: (ns) => {
      standIn.grown = Math.min(SPAN, standIn.grown + ns);
      standIn.listing.until = BEGIN + BigInt(standIn.grown);
      standIn.tell();
    },
    tell: () => listeners.forEach((response) => response.write(`event: timeline\ndata: ${status(standIn)}\n\n${standIn.recorder.told}${standIn.office.told}`)),
    hangUp: () => listeners.forEach((response) => response.end()),
    end: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
  return standIn;
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

function handle(standIn: StandIn, folder: string, listeners: Set<ServerResponse>, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? "/", standIn.url);
  response.setHeader("Content-Security-Policy", POLICY);
  if (!url.pathname.startsWith("/api/v1/")) {
    page(folder, url.pathname, response);
  } else if (request.headers.authorization !== `Bearer ${TOKEN}`) {
    json(response, 401, JSON.stringify({ error: { code: "token", message: "the token is missing" } }));
  } else {
    api(standIn, listeners, url, request, response);
  }
}

function page(folder: string, path: string, response: ServerResponse): void {
  const file = join(folder, normalize(path === "/" ? "/index.html" : path));
  if (!file.startsWith(folder) || !existsSync(file) || !statSync(file).isFile()) {
    json(response, 404, JSON.stringify({ error: { code: "absent", message: "there is no page of this name" } }));
    return;
  }
  response.setHeader("Content-Type", KINDS[extname(file)] ?? "application/octet-stream");
  response.end(readFileSync(file));
}

function api(standIn: StandIn, listeners: Set<ServerResponse>, url: URL, request: IncomingMessage, response: ServerResponse): void {
  const number = (name: string): number => Number(url.searchParams.get(name) ?? 0);
  switch (url.pathname.replace("/api/v1/", "")) {
    case "start":
      return json(response, 200, started(standIn));
    case "timeline":
      return json(response, 200, status(standIn));
    case "findings":
      return json(response, 200, standIn.findings);
    case "traces":
      return json(response, 200, JSON.stringify({ traces: [{ name: "invented", path: "/traces/invented" }] }));
    case "catalogue": {
      standIn.askedCatalogue++;
      const tracks = INVENTED.map((one) => one.track).slice(number("tracks_from"));
      return json(response, 200, JSON.stringify({ version: 1, tracks, values: VALUES.slice(0, standIn.namedTo ?? VALUES.length).slice(number("values_from")) }));
    }
    case "changes":
      response.setHeader("Content-Type", "text/event-stream");
      response.write(`event: timeline\ndata: ${status(standIn)}\n\n`);
      listeners.add(response);
      standIn.listened++;
      request.on("close", () => listeners.delete(response));
      return undefined;
    case "openapi.json":
      standIn.askedDescription++;
      if (standIn.descriptionRefusal !== null) {
        return json(response, standIn.descriptionRefusal, JSON.stringify({ error: { code: "fault", message: "the disk is full" } }));
      }
      return json(response, 200, description(standIn));
    case "events":
    case "events/count":
    case "filter/check":
      return void events(standIn, url, request, response);
    case "items":
      return items(standIn, url, response);
    case "tiles":
      return tiles(standIn, url, request, response);
    default:
      return void office(standIn, listeners, url, request, response);
  }
}

/** Notes, analyses and jobs; there is nothing else. */
async function office(standIn: StandIn, listeners: Set<ServerResponse>, url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const parts: Buffer[] = [];
  for await (const part of request) {
    parts.push(part as Buffer);
  }
  const [method, path, body] = [request.method ?? "GET", url.pathname.replace("/api/v1/", ""), Buffer.concat(parts).toString()];
  const answer = standIn.pad.answer(method, path, body) ?? standIn.recorder.answer(method, path, body) ?? standIn.office.answer(method, path, body);
  if (answer === null) {
    json(response, 404, JSON.stringify({ error: { code: "absent", message: "there is nothing of this name" } }));
    return;
  }
  json(response, answer.status, answer.body);
  listeners.forEach((listener) => listener.write(standIn.office.told));
}

async function events(standIn: StandIn, url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const parts: Buffer[] = [];
  for await (const part of request) {
    parts.push(part as Buffer);
  }
  standIn.askedEvents.push(url.pathname + url.search);
  const { status: code, headers, body } = standIn.listing.answer(url.pathname.replace("/api/v1/", ""), url.searchParams, Buffer.concat(parts).toString());
  response.writeHead(code, headers).end(typeof body === "string" ? body : Buffer.from(body));
}

function items(standIn: StandIn, url: URL, response: ServerResponse): void {
  standIn.askedItems.push(url.search);
  if (standIn.itemsRefusal !== null) {
    json(response, standIn.itemsRefusal, JSON.stringify({ error: { code: "fault", message: "the disk is full" } }));
    return;
  }
  json(response, 200, answerItems(itemsOf(Number(url.searchParams.get("track"))), url.searchParams, BEGIN));
}

function tiles(standIn: StandIn, url: URL, request: IncomingMessage, response: ServerResponse): void {
  if (standIn.refusal !== null) {
    json(response, standIn.refusal, JSON.stringify({ error: { code: "fault", message: "the disk is full" } }));
    return;
  }
  const events = url.searchParams.getAll("event");
  const read = events.length === 0 ? standIn.read : Math.min(standIn.read, standIn.filterRead);
  const of = Number(url.searchParams.get("level"));
  const endsAt = (Number(url.searchParams.get("first")) + Number(url.searchParams.get("count"))) * 2 ** of;
  // The existing part of a trace that grows does not change any more.
  const grown = standIn.live === null || endsAt <= standIn.grown ? "" : standIn.grown;
  const etag = `"${read}${encodeURIComponent(events.join())}${grown}"`;
  response.setHeader("ETag", etag);
  if (request.headers["if-none-match"] === etag) {
    response.writeHead(304).end();
    return;
  }
  standIn.asked.push(url.search);
  standIn.grownWhenAsked.push(standIn.grown);
  const get = (name: string): string => url.searchParams.get(name) ?? "";
  const tracks = get("tracks").split(",").map(Number);
  const live = standIn.live === null ? { readNs: SPAN * read } : { readNs: standIn.grown, endNs: standIn.grown, holes: standIn.holes };
  const found = answer(Number(get("level")), BigInt(get("first")), Number(get("count")), tracks, { ...live, events });
  response.setHeader("Content-Type", "application/octet-stream");
  setTimeout(() => response.end(Buffer.from(encodeAnswer(found))), standIn.slowMs);
}

/** As much of the API's description as the page reads. */
function description({ canFilter }: StandIn): string {
  const names = ["level", "first", "count", "tracks", ...(canFilter ? ["filter", "event"] : [])];
  return JSON.stringify({ paths: { "/api/v1/tiles": { get: { parameters: names.map((name) => ({ name, in: "query" })) } } } });
}

function status(standIn: StandIn): string {
  const { read, filterRead, instance, live, lost } = standIn;
  if (live !== null) {
    return growing(standIn);
  }
  const state = read >= 1 ? "complete" : "building";
  const eta = read >= 1 ? "null" : Math.round((1 - read) * 10_000);
  return (
    `{"begin_ns":${BEGIN},"end_ns":${BEGIN + BigInt(SPAN)},"unix":true,"level_min":0,"level_max":62,"version":${1 + Math.round(read * 100) + Math.round(filterRead * 100)},` +
    `${instance === null ? "" : `"instance":"${instance}",`}"done_bytes":${Math.round(read * 1e8)},"total_bytes":100000000,"eta_ms":${eta},"state":"${state}","failure":null,"live":null,"lost_events":${lost},"events":${read >= 1 ? 41_234 : "null"}}`
  );
}

/** The same of a trace that a recorder writes. */
function growing({ instance, live, grown, behindMs, lost }: StandIn): string {
  const watermark = BEGIN + BigInt(grown);
  const events = TOLD.filter(({ time }) => time < watermark).length;
  const behind = live === "recording" ? behindMs : null;
  return (
    `{"begin_ns":${BEGIN},"end_ns":${watermark - 1n},"unix":true,"level_min":0,"level_max":${Math.ceil(Math.log2(grown + 1))},"version":${1 + Math.round(grown / 1_000)},"instance":"${instance}","done_bytes":${grown},"total_bytes":${grown},"eta_ms":null,` +
    `"state":"complete","failure":null,"lost_events":${lost},"events":${events},"live":{"state":"${live}","watermark_ns":${watermark},"behind_ms":${behind},"problem":null}}`
  );
}

function json(response: ServerResponse, code: number, text: string): void {
  response.writeHead(code, { "Content-Type": "application/json" }).end(text);
}
