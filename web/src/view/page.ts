// A page at work: the state, the parts that ask the server, and their connections. There is one; tests of rooms below need none of it.

import { knowsFilteredTiles } from "../api/filter.ts";
import { listen, pause } from "../api/changes.ts";
import { ApiFault, Client } from "../api/client.ts";
import { TileFetcher, type Part } from "../api/tiles.ts";
import { askRecording } from "../api/recording.ts";
import { takeTold } from "../api/told.ts";
import { arrowTracks } from "../model/arrows.ts";
import { TileCache } from "../model/cache.ts";
import { EMPTY_CATALOGUE, isOtherServer, readCatalogue, readStatus, tracksKnown, valuesKnown, type Status, type Track } from "../model/catalogue.ts";
import { followingTracks } from "../model/filter-tracks.ts";
import { queryOf } from "../model/filter.ts";
import { passes } from "../model/fault.ts";
import { Shape, parseJson } from "../model/json.ts";
import { isRecording } from "../model/live.ts";
import { readRecording } from "../model/recording.ts";
import type { Snap } from "../model/snap.ts";
import { readTraces } from "../model/traces.ts";
import { decodeUrl } from "../model/url.ts";
import { valueMax } from "../model/tile.ts";
import { overviewRange, overviewTracks } from "../model/overview.ts";
import { around, bucketSpan, levelFor, tilesIn } from "../model/wanted.ts";
import { rowsBetween } from "../model/rows.ts";
import { LEGEND_MAX, rowsSeen } from "../model/screen.ts";
import { endOf, type Viewport } from "../model/viewport.ts";
import { TILE_BUCKETS, trackNumber, type Level } from "../units/tiles.ts";
import { between, minus, plus, type Nanos } from "../units/time.ts";
import type { Picture } from "../draw/timeline.ts";
import { withRecording } from "../state/record.ts";
import { Store } from "../state/store.ts";
import { EventsDesk } from "./events/desk.ts";
import { curvesSeen, drawnTo, opened, unfaulted, widthOf, withCatalogue, withFault, withStatus, withTiles, type State } from "../state/viewer.ts";
import { keepFindings } from "./findings.ts";
import { keepNames } from "./filter-names.ts";
import { keepOwners } from "./filter-owners.ts";
import { keepUrl, ownToken } from "./history.ts";
import { Picker } from "./item/picker.ts";
import { Pace } from "./pace.ts";
import { keepActivity } from "./rail/activity.ts";
import { Desk } from "./analyses/desk.ts";
import { StartDesk } from "./start/desk.ts";
import { keepFollowing } from "./following.ts";

/** Memory for tiles. */
const TILE_BYTES_MAX = 128 << 20;
/** Tiles on each side of the window that are fetched when nothing else is to do. */
const MARGIN_TILES = 2;
/** So many screens of rows are looked through at a time where only active tracks are wanted. */
const ACTIVE_SCREENS = 12;
/** And so many of the tracks that are not shown, of which it is not known for this window. */
const UNSURE_MAX = 512;
/** While traces are read, or events of a filter looked for, tiles that are not exact yet are asked for again that often. */
const PACE_MS = 1_000;
/** Of traces that are recorded, and read as far as they are there, only tiles at their end are new. */
const LIVE_PACE_MS = 100;
/** Names are asked for anew that often during a recording: names of earlier tracks and values may have become known. */
const NAMES_MS = 10_000;
/** A request that the server could not answer is sent again after that. */
const RETRY_MS = 2_000;

export interface Page {
  readonly store: Store<State>;
  readonly tiles: TileCache;
  /** The server's client. */
  readonly client: Client;
  /** The token that it has; `null`: the page came without one. */
  readonly token: string | null;
  /** The picked item. */
  readonly picker: Picker;
  /** Asks for the list of events. */
  readonly events: EventsDesk;
  /** The picture of the timeline, for saving it as an image. */
  picture: Picture | null;
  /** That of the pinned rows, which lies on it at its top; `null`: there are none. */
  pinned: Picture | null;
  /** Asks analyses. */
  readonly desk: Desk;
  /** Has traces opened, where none are. */
  readonly start: StartDesk;
  /** The drag of the pointer on the timeline. */
  drag: Drag | null;
  /** Ends the question for the next edge of a bar, to which an edge of the selection goes. */
  stepping: AbortController | null;
}

/** A drag that has begun. */
export interface Drag {
  readonly begin: Nanos;
  /** Where a selection begins: at an edge near there, or at the other end of one whose edge is moved. */
  readonly from: Edge;
  readonly x: number;
  /** The row where it began; `null`: on none. */
  readonly row: string | null;
  /** The window as it was then. */
  readonly window: Viewport;
  /** It moves the window, instead of selecting. */
  readonly moves: boolean;
  /** It is more than a click. */
  moved: boolean;
  /** Where a selection ends so far. */
  to?: Edge;
}

/** An end of a selection: if it is one of a bar, on which track. */
export interface Edge {
  readonly time: Nanos;
  readonly snap: Snap | null;
  readonly track: Track | null;
}

/** Begins to ask the server. */
export function openPage(): Page {
  const token = ownToken();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const seen = decodeUrl(location.hash);
  const store = new Store(opened(seen, zone, dark.matches ? "dark" : "light"));
  const client = new Client("api/v1", token, (url, init) => fetch(url, init), takeTold(document));
  const [picker, events] = [new Picker(store, client), new EventsDesk(store, client, seen.listed)];
  const page: Page = { store, tiles: new TileCache(TILE_BYTES_MAX), client, token, picker, events, desk: new Desk(client), start: new StartDesk(client), picture: null, pinned: null, drag: null, stepping: null };
  dark.addEventListener("change", () => store.update((state) => ({ ...state, theme: dark.matches ? "dark" : "light" })));
  void page.start.opened((fault) => store.update((state) => (fault === null ? unfaulted(state) : withFault(state, fault)))).then(() => new Conductor(page, client).begin());
  keepFindings(page);
  keepNames(page);
  keepOwners(page);
  keepActivity(page);
  keepUrl(page);
  keepFollowing(store);
  // A page that may come back as it is goes on wanting its answers.
  window.addEventListener("pagehide", (event) => (event.persisted ? undefined : page.desk.jobs.end()));
  return page;
}

/** Sends the requests that the state needs, and puts the answers into the state. */
class Conductor {
  private readonly page: Page;
  private readonly client: Client;
  private readonly fetcher: TileFetcher;
  private readonly ending = new AbortController();
  private asking = false;
  private again = false;
  private scheduled = false;
  /** Tiles were asked for. */
  private hasAsked = false;
  private greeted = false;
  /** The server was not heard for a while, and has not said since which one it is: its messages about jobs wait for that. */
  private wasLost = false;
  private heldJobs: string | null = null;
  /** Goes up with each server that is another one. */
  private era = 0;
  /** The parts on the screen. */
  private seen: readonly Part[] = [];
  /** The server's version that is asked for. */
  private readonly pace = new Pace(() => {
    this.takenTo = this.page.store.state.status?.extent.end ?? null;
    void this.refreshCatalogue();
    this.schedule();
  });
  /** Until when traces were there in that version, and until when tiles are asked for. */
  private takenTo: Nanos | null = null;
  private askedTo: Nanos | null = null;
  /** The catalog is asked for from its begin: names of earlier tracks and values may have become known. */
  private afresh = false;
  private namedAt = -Infinity;
  /** Whether the server can tell of some events, as far as is known; `null`: it has to be asked. */
  private canFilter: boolean | null = null;
  private retrying: ReturnType<typeof setTimeout> | null = null;

  constructor(page: Page, client: Client) {
    this.page = page;
    this.client = client;
    const { store } = page;
    this.fetcher = new TileFetcher(client, page.tiles, {
      arrived: (tiles) => {
        store.update((state) => withTiles(state, this.fetcher.complete, this.isFiltering(state.status)));
        this.reach();
        if (tiles.some((tile) => valueMax(tile) >= valuesKnown(store.state.catalogue))) {
          void this.refreshCatalogue();
        }
        this.rest();
      },
      // The fetcher asks for tiles again.
      failed: (fault) => {
        this.tell(fault);
        this.rest();
      },
    });
  }

  begin(): void {
    const { store } = this.page;
    let before = store.state;
    store.subscribe(() => {
      const now = store.state;
      if (wantsOther(before, now)) {
        this.schedule();
      }
      if (before.namesWanted !== now.namesWanted && now.namesWanted > valuesKnown(now.catalogue)) {
        void this.refreshCatalogue();
      }
      before = now;
    });
    void this.refresh();
    void listen(
      this.client,
      {
        change: (change) => this.hear(change.name, change.data),
        connected: () => this.greet(),
        lost: (fault) => this.tell(fault),
      },
      this.ending.signal,
    );
  }

  /** The server tells of changes from now on. If that is not the first time, something may have been missed. */
  private greet(): void {
    if (this.greeted) {
      this.wasLost = true;
      this.page.desk.jobs.reached();
      void this.refresh();
    }
    this.greeted = true;
  }

  /** Another server answers than before: the known numbers of tracks, values and jobs are not right any more. */
  private beginAnew(): void {
    this.era++;
    this.fetcher.stop();
    this.page.tiles.clear();
    this.page.desk.jobs.renew();
    this.pace.reset();
    this.canFilter = null;
    this.afresh = true;
    // The server that answers now tells the recorder.
    this.page.store.update((state) => ({ ...state, recording: null, rates: [], drawn: null, namesWanted: 0 }));
    [this.takenTo, this.askedTo] = [null, null];
    this.schedule();
  }

  /** The server tells that something has changed; the page asks for the change. */
  private hear(name: string, data: string): void {
    try {
      if (name === "recording") {
        const recording = readRecording(new Shape(parseJson(data), "changes"));
        this.page.store.update((state) => withRecording(state, recording));
      } else if (name === "jobs" && this.wasLost) {
        this.heldJobs = data;
      } else if (name === "jobs") {
        this.page.desk.hear(data);
      } else if (name === "timeline" && (this.take(readStatus(new Shape(parseJson(data), "changes"))) || this.afresh)) {
        void this.refreshCatalogue();
      }
    } catch (error) {
      this.fail(error);
    }
  }

  /** Takes the server's state of reading; whether its version is a new one that is to be asked for now. */
  private take(status: Status): boolean {
    const { store, desk } = this.page;
    const before = store.state.status;
    if (before !== null && isOtherServer(before, status, this.wasLost)) {
      this.beginAnew();
      if (status.live !== undefined) {
        void this.refreshRecording();
      }
    }
    this.wasLost = false;
    store.update((state) => withStatus(state, status));
    const completes = status.state === "complete" && before?.state !== "complete";
    this.afresh ||= completes && this.mayNames(status);
    const held = this.heldJobs;
    this.heldJobs = null;
    if (held !== null) {
      desk.hear(held);
    }
    const isTaken = this.pace.hear(status.version, completes ? 0 : isRecording(status) && status.state === "complete" ? LIVE_PACE_MS : PACE_MS);
    this.takenTo = isTaken ? status.extent.end : this.takenTo;
    return isTaken;
  }

  /** Whether all is to be asked for anew once all is read: a recording is read to its end several times a second. */
  private mayNames(status: Status): boolean {
    const now = performance.now();
    const may = !isRecording(status) || now - this.namedAt > NAMES_MS;
    this.namedAt = may ? now : this.namedAt;
    return may;
  }

  /** Asks for everything at once: the names of the traces are shown also where there is no timeline of them. */
  private async refresh(): Promise<void> {
    const { store } = this.page;
    const timeline = async (): Promise<void> => {
      const status = readStatus(await this.client.json("timeline"));
      this.take(status);
      if (this.afresh) {
        void this.refreshCatalogue();
      }
      if (status.live !== undefined) {
        await this.refreshRecording();
      }
    };
    const traces = async (): Promise<void> => {
      const shape = await this.client.json("traces");
      store.update((state) => ({ ...state, traces: readTraces(shape) }));
    };
    await Promise.all([this.guarded(timeline), this.guarded(traces), this.refreshCatalogue()]);
  }

  /** Asks for the recorder of the traces, of a server that knows of such things. */
  private refreshRecording(): Promise<void> {
    const { era } = this;
    return this.guarded(async () => {
      const recording = await askRecording(this.client);
      this.page.store.update((state) => (era === this.era ? withRecording(state, recording) : state));
    });
  }

  /** Does something, and tells of a fault. */
  private async guarded(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.fail(error);
    }
  }

  /** Asks again in a moment, if that may help. */
  private retry(fault: ApiFault): void {
    if (passes(fault.kind) && this.retrying === null) {
      this.retrying = setTimeout(() => {
        this.retrying = null;
        void this.refresh();
      }, RETRY_MS);
    }
  }

  /** Asks for tracks and values that are new; once more if something changes meanwhile. */
  private async refreshCatalogue(): Promise<void> {
    if (this.asking) {
      this.again = true;
      return;
    }
    this.asking = true;
    await this.guarded(async () => {
      do {
        this.again = false;
        const isAfresh = this.afresh;
        const known = isAfresh ? EMPTY_CATALOGUE : this.page.store.state.catalogue;
        const shape = await this.client.json(`catalogue?tracks_from=${tracksKnown(known)}&values_from=${valuesKnown(known)}`);
        this.afresh &&= !isAfresh;
        this.page.store.update((state) => withCatalogue(state, readCatalogue(shape, known)));
      } while (this.again);
    });
    this.asking = false;
  }

  /** Tiles are asked for once for each picture, however often the window moves between two; the first ones before there is one. */
  private schedule(): void {
    if (!this.scheduled) {
      this.scheduled = true;
      const ask = (): void => {
        this.scheduled = false;
        this.want();
      };
      if (this.hasAsked) {
        requestAnimationFrame(ask);
      } else {
        queueMicrotask(ask);
      }
    }
  }

  private want(): void {
    const { state } = this.page.store;
    const { status, view } = state;
    const width = widthOf(state);
    if (status === null || view === null || width <= 0 || !(state.isCatalogued || this.hasAsked)) {
      this.pace.answered();
      return;
    }
    this.hasAsked = true;
    this.chooseEvents(state);
    const range = tilesIn(this.ahead(state, view), status.extent, levelFor(view.span, width, status.levels));
    const rows = rowsSeen(state, state.legend ? LEGEND_MAX : 0);
    // Arrows are drawn between rows, also where the row that counts them is not on the screen.
    const arrows = state.arrows ? arrowTracks(state.catalogue.tracks) : [];
    const tracks = [...new Set([...rows.flatMap((row) => row.track ?? []), ...arrows, ...curvesSeen(state)].map(({ number }) => number))];
    const overview = { range: overviewRange(status, width), tracks: overviewTracks(state.catalogue).map((track) => track.number) };
    // Rows that turn out to be idle make room for those below them, which are better known before.
    const below = state.layout.active ? rowsBetween(state.rows, state.scroll + state.size.height, state.scroll + state.size.height * ACTIVE_SCREENS) : [];
    this.seen = [{ range, tracks }, overview];
    this.fetcher.want({
      seen: this.seen,
      soon: [{ range, tracks: state.unsure.slice(0, UNSURE_MAX).map(trackNumber) }, { range, tracks: below.flatMap((row) => row.track?.number ?? []) }, { range: around(range, status.extent, MARGIN_TILES), tracks }],
      version: this.pace.version,
    });
    const { complete } = this.fetcher;
    const isFiltering = this.isFiltering(status);
    this.page.store.update((now) => (now.complete === complete && now.isFiltering === isFiltering ? now : { ...now, complete, isFiltering }));
    this.reach();
    this.rest();
  }

  /** The next version may be taken once all that is on the screen has come in this one. */
  private rest(): void {
    if (!this.fetcher.isAsking) {
      this.pace.answered();
    }
  }

  /** The window with the part that it is about to show, where it goes along: that is asked for like the visible part. */
  private ahead({ follow }: State, view: Viewport): Viewport {
    const most = plus(endOf(view), view.span);
    const end = follow.isOn && this.takenTo !== null ? between(this.takenTo, endOf(view), most) : endOf(view);
    this.askedTo = follow.isOn && this.takenTo !== null ? end : null;
    return { begin: view.begin, span: minus(end, view.begin) };
  }

  /** A window that goes along may go as far as all was asked for that has come. */
  private reach(): void {
    const { askedTo } = this;
    if (askedTo !== null && this.fetcher.complete) {
      this.page.store.update((state) => drawnTo(state, askedTo));
    }
  }

  /** Whether the server still looks for events of the filter in the parts on the screen. */
  private isFiltering(status: Status | null): boolean {
    const { tiles } = this.page;
    if (tiles.chosen === "" || status === null) {
      return false;
    }
    const bucketsOf = (of: Level): number => Number((status.extent.end - status.extent.begin) / bucketSpan(of));
    // The tile in which a recording ends never tells all.
    const grown = isRecording(status) ? TILE_BUCKETS : 0;
    return this.seen.some(({ range, tracks }) => tracks.some((track) => tiles.queryOf(track) !== "" && tiles.isUnread(range, track, bucketsOf(range.level) - grown)));
  }

  /** Tracks that can follow the filter do, if the server can tell of some events. */
  private chooseEvents({ filter, catalogue }: State): void {
    const query = queryOf(filter);
    if (query !== "" && this.canFilter === null) {
      this.canFilter = false;
      void this.learn();
    }
    const { tiles, store } = this.page;
    const before = tiles.chosen;
    tiles.choose(this.canFilter === true ? query : "", followingTracks(catalogue.tracks));
    if (tiles.chosen !== before) {
      // Other tiles are to be drawn, some of which may be there.
      store.update((state) => ({ ...state, arrivals: state.arrivals + 1 }));
    }
  }

  /** Asks whether the server can tell of some events; again in a moment, if it could not be asked. */
  private async learn(): Promise<void> {
    const { era } = this;
    let found: boolean | null = false;
    try {
      found = await knowsFilteredTiles(this.client);
    } catch (error) {
      if (passes(this.fail(error).kind)) {
        await pause(RETRY_MS, this.ending.signal);
        found = null;
      }
    }
    // Another server is asked for itself.
    if (era === this.era) {
      this.canFilter = found;
      this.schedule();
    }
  }

  private fail(error: unknown): ApiFault {
    const isOwn = error instanceof ApiFault;
    const fault = isOwn ? error : new ApiFault("nonsense", error instanceof Error ? error.message : String(error));
    this.tell(fault);
    this.retry(fault);
    return fault;
  }

  private tell({ kind, message }: ApiFault): void {
    if (kind !== "aborted") {
      this.page.store.update((state) => withFault(state, { kind, message }));
    }
  }
}

/** Whether other tiles are on the screen than before. */
function wantsOther(before: State, now: State): boolean {
  return (
    before.view !== now.view ||
    before.rows !== now.rows ||
    before.unsure !== now.unsure ||
    before.scroll !== now.scroll ||
    before.size !== now.size ||
    before.arrows !== now.arrows ||
    before.legend !== now.legend ||
    before.filter !== now.filter ||
    before.curves !== now.curves ||
    before.panels !== now.panels ||
    before.status?.version !== now.status?.version
  );
}
