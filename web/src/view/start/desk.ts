// Does the user's choice before traces are open: asks the server to open them, sends it files, and tells the result.

import { pause } from "../../api/changes.ts";
import { ApiFault, type Client } from "../../api/client.ts";
import { askStart, forgetUpload, openPaths, openSample, openUpload, sendFiles } from "../../api/start.ts";
import { passes } from "../../model/fault.ts";
import { arranged, refusalOf, titleOf, type Dropped, type StartInfo } from "../../model/start.ts";
import { begun, ended, FIRST_START, sent, startAdvice, withInfo, type StartState } from "../../state/start.ts";
import { Store } from "../../state/store.ts";

/** The page asks again after that while another page opens traces, while traces have no events, and where a server does not answer. */
const AGAIN_MS = 500;

type Wanted = "path" | "files" | "sample" | "list";

export class StartDesk {
  readonly store = new Store<StartState>(FIRST_START);
  private readonly client: Client;
  private sending: AbortController | null = null;
  private count = 0;

  constructor(client: Client) {
    this.client = client;
  }

  /** Ends when traces are open, or when the server does not say whether they are: a request for them learns more. `tell` hears why there is no
   * answer, and `null` once there is one. */
  async opened(tell: (fault: ApiFault | null) => void): Promise<void> {
    const ending = new AbortController();
    for (;;) {
      try {
        this.take(await askStart(this.client));
        tell(null);
      } catch (error) {
        const fault = faultOf(error);
        if (!passes(fault.kind)) {
          this.store.update((state) => ({ ...state, isOpen: true }));
          return;
        }
        tell(fault);
        await pause(AGAIN_MS, ending.signal);
        continue;
      }
      const { info, isOpen } = this.store.state;
      if (isOpen) {
        return;
      }
      await (info?.state === "opening" || info?.state === "waiting" ? pause(AGAIN_MS, ending.signal) : this.changed());
      if (this.store.state.isOpen) {
        return;
      }
    }
  }

  /** Waits until traces are open, or the user comes back to the page: another one may have opened some. */
  private changed(): Promise<void> {
    return new Promise((done) => {
      const end = (): void => {
        forget();
        window.removeEventListener("focus", end);
        done();
      };
      const forget = this.store.subscribe(() => (this.store.state.isOpen ? end() : undefined));
      window.addEventListener("focus", end);
    });
  }

  async openPaths(paths: readonly string[]): Promise<void> {
    await this.open(titleOf(paths), "path", () => openPaths(this.client, paths));
  }

  async openSample(): Promise<void> {
    await this.open("The sample", "sample", () => openSample(this.client));
  }

  /** Sends files, and opens the traces in them. */
  async openFiles(found: readonly Dropped<Blob>[]): Promise<void> {
    const { info, busy } = this.store.state;
    if (busy !== null || info === null) {
      return;
    }
    const files = arranged(found);
    const refusal = info.uploadBytesMax === 0 ? "Files cannot be sent to this `kymo view`: type the path of a trace." : refusalOf(files, info.uploadBytesMax);
    if (refusal !== null) {
      this.store.update((state) => ended(state, { why: refusal, todo: "" }));
      return;
    }
    const total = files.reduce((sum, file) => sum + file.size, 0);
    const upload = `page-${Date.now()}-${++this.count}`;
    this.sending = new AbortController();
    this.store.update((state) => begun(state, { kind: "sending", name: "", files: files.length, done: 0, total }));
    try {
      await sendFiles(this.client, upload, files, (done, name) => this.store.update((state) => sent(state, done, name)), this.sending.signal);
      this.sending = null;
      this.store.update((state) => begun(state, { kind: "opening", what: titleOf([...new Set(files.map((file) => file.path.split("/")[0] ?? ""))]) }));
      this.take(await openUpload(this.client, upload));
      this.store.update((state) => ended(state, null));
    } catch (error) {
      this.sending = null;
      this.fail(error, "files");
      await forgetUpload(this.client, upload);
    }
  }

  /** The files on their way are not wanted any more. */
  cancel(): void {
    this.sending?.abort();
  }

  private async open(what: string, wanted: Wanted, ask: () => Promise<StartInfo>): Promise<void> {
    if (this.store.state.busy !== null) {
      return;
    }
    this.store.update((state) => begun(state, { kind: "opening", what }));
    try {
      this.take(await ask());
      this.store.update((state) => ended(state, null));
    } catch (error) {
      this.fail(error, wanted);
    }
  }

  private take(info: StartInfo): void {
    this.store.update((state) => withInfo(state, info));
  }

  private fail(error: unknown, wanted: Wanted): void {
    const { kind, message } = faultOf(error);
    const why = message.charAt(0).toUpperCase() + message.slice(1);
    this.store.update((state) => ended(state, kind === "aborted" ? null : { why: /[.!?]$/.test(why) ? why : `${why}.`, todo: startAdvice(kind, wanted) }));
    if (kind === "traces") {
      // Another page was quicker: the open traces are shown.
      void askStart(this.client).then((info) => this.take(info), () => undefined);
    }
  }
}

function faultOf(error: unknown): ApiFault {
  return error instanceof ApiFault ? error : new ApiFault("nonsense", error instanceof Error ? error.message : String(error));
}
