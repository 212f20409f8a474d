// The page before traces are open: recent traces, a place for files, a path, a sample, and how to record.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { agoText, bytesText, titleOf, type Dropped, type RecentTraces, type RecordHint } from "../../model/start.ts";
import type { Busy, StartFault } from "../../state/start.ts";
import { nanos } from "../../units/time.ts";
import { usePick } from "../hooks.ts";
import { copyText } from "../leaving.ts";
import type { Page } from "../page.ts";
import type { StartDesk } from "./desk.ts";
import { droppedFiles, pickedFiles } from "./drop.ts";
import "./start.css";

export function Start({ page }: { readonly page: Page }): JSX.Element {
  const desk = page.start;
  const { info, busy, fault } = usePick(desk.store, (state) => state);
  const [isOver, setOver] = useState(false);
  const [wrong, setWrong] = useState<string | null>(null);
  const mayDrop = info !== null && info.uploadBytesMax > 0;
  const take = (files: Promise<readonly Dropped<Blob>[]>): void => {
    setWrong(null);
    files.then((found) => desk.openFiles(found), (error: unknown) => setWrong(`What was dropped cannot be read: ${error instanceof Error ? error.message : String(error)}`));
  };
  const drag = (event: DragEvent): void => {
    event.preventDefault();
    setOver(mayDrop);
  };
  const leave = (event: DragEvent): void => {
    // Between two elements of the page a drag does not leave it.
    const { relatedTarget: to, currentTarget: page } = event;
    if (!(to instanceof Node && page instanceof Node && page.contains(to))) {
      setOver(false);
    }
  };
  const drop = (event: DragEvent): void => {
    event.preventDefault();
    setOver(false);
    if (event.dataTransfer !== null) {
      take(droppedFiles(event.dataTransfer));
    }
  };
  const told = fault ?? (wrong === null ? null : { why: wrong, todo: "Drop the folder of one trace, or an archive of it." });
  return (
    <main class={`start${isOver ? " over" : ""}`} onDragEnter={drag} onDragOver={drag} onDragLeave={leave} onDrop={drop}>
      <div class="start-page">
        <header class="start-head">
          <h1>Kymograph</h1>
          <p>No trace is open yet. Choose one; it is shown here.</p>
        </header>
        <Progress busy={busy} desk={desk} />
        <Failure fault={busy === null ? told : null} />
        <div class="start-parts">
          <Recent entries={info?.recent ?? []} problem={info?.problem ?? null} desk={desk} isBusy={busy !== null} />
          <Part title="Open a trace">
            <PathForm desk={desk} isBusy={busy !== null} />
            {mayDrop ? <Drop isOver={isOver} isBusy={busy !== null} bytesMax={info.uploadBytesMax} take={(files) => take(Promise.resolve(pickedFiles(files)))} /> : null}
            {info?.sample === true ? (
              <p class="start-sample">
                <button type="button" class="button" disabled={busy !== null} onClick={() => void desk.openSample()}>
                  Open the sample
                </button>
                <span class="faint">A small server at work.</span>
              </p>
            ) : null}
          </Part>
          {info === null || info.record.length === 0 ? null : <Record hints={info.record} />}
        </div>
      </div>
    </main>
  );
}

function Part({ title, children }: { readonly title: string; readonly children: ComponentChildren }): JSX.Element {
  const id = `start-${title.toLowerCase().replace(/[^a-z]+/g, "-")}`;
  return (
    <section class="start-part" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  );
}

/** The work under way; screen readers hear of it. */
function Progress({ busy, desk }: { readonly busy: Busy | null; readonly desk: StartDesk }): JSX.Element {
  return (
    <div class="start-told" role="status">
      {busy === null ? null : busy.kind === "opening" ? (
        <p class="start-busy">{busy.what} is being opened…</p>
      ) : (
        <p class="start-busy">
          <span>
            {bytesText(busy.done)} of {bytesText(busy.total)} sent
            <span class="faint">
              {" "}
              {busy.files === 1 ? "" : `in ${busy.files.toLocaleString("en")} files, `}
              {busy.name}
            </span>
          </span>
          <progress aria-label="Sent" value={busy.done} max={Math.max(1, busy.total)} />
          <button type="button" class="button" onClick={() => desk.cancel()}>
            Cancel
          </button>
        </p>
      )}
    </div>
  );
}

function Failure({ fault }: { readonly fault: StartFault | null }): JSX.Element | null {
  if (fault === null) {
    return null;
  }
  return (
    <div class="start-failure" role="alert">
      <strong>{fault.why}</strong>
      {fault.todo === "" ? null : <span>{fault.todo}</span>}
    </div>
  );
}

interface RecentOptions {
  readonly entries: readonly RecentTraces[];
  readonly problem: string | null;
  readonly desk: StartDesk;
  readonly isBusy: boolean;
}

/** Arrows go up and down in it, Enter opens. */
function Recent({ entries, problem, desk, isBusy }: RecentOptions): JSX.Element {
  const list = useRef<HTMLUListElement>(null);
  const [at, setAt] = useState(0);
  const now = nanos(BigInt(Date.now()) * 1_000_000n);
  const move = (event: KeyboardEvent): void => {
    const last = entries.length - 1;
    const to = { ArrowDown: Math.min(at + 1, last), ArrowUp: Math.max(at - 1, 0), Home: 0, End: last }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      setAt(to);
      list.current?.querySelectorAll("button")[to]?.focus();
    }
  };
  return (
    <Part title="Recent traces">
      {problem === null ? null : <p class="start-problem">The list of recent traces cannot be read: {problem}.</p>}
      {entries.length === 0 ? <p class="faint">Traces that are opened here, or with <code>kymo view TRACE</code>, are listed from then on.</p> : null}
      <ul class="start-recent" ref={list} onKeyDown={move}>
        {entries.map(({ paths, opened, there }, index) => (
          <li key={paths.join("\0")}>
            <button
              type="button"
              class={`plain start-entry${there ? "" : " gone"}`}
              tabIndex={index === Math.min(at, entries.length - 1) ? 0 : -1}
              aria-disabled={!there || isBusy}
              title={paths.join("\n")}
              onFocus={() => setAt(index)}
              onClick={() => (there ? void desk.openPaths(paths) : undefined)}
            >
              <span class="start-name">{titleOf(paths)}</span>
              <span class="start-when">{there ? agoText(opened, now) : "not there any more"}</span>
              <span class="start-where">{paths.join(", ")}</span>
            </button>
          </li>
        ))}
      </ul>
    </Part>
  );
}

function PathForm({ desk, isBusy }: { readonly desk: StartDesk; readonly isBusy: boolean }): JSX.Element {
  const [path, setPath] = useState("");
  const submit = (event: Event): void => {
    event.preventDefault();
    if (path.trim() !== "") {
      void desk.openPaths([path.trim()]);
    }
  };
  return (
    <form class="start-path" onSubmit={submit}>
      <label for="start-path">Path on the machine where kymo runs</label>
      <div class="start-row">
        <input id="start-path" class="start-field" type="text" placeholder="~/kymo-traces/app" spellcheck={false} autocomplete="off" value={path} onInput={(event) => setPath(event.currentTarget.value)} />
        <button type="submit" class="button" disabled={isBusy || path.trim() === ""}>
          Open
        </button>
      </div>
    </form>
  );
}

interface DropOptions {
  readonly isOver: boolean;
  readonly isBusy: boolean;
  readonly bytesMax: number;
  take(files: Iterable<File>): void;
}

function Drop({ isOver, isBusy, bytesMax, take }: DropOptions): JSX.Element {
  const [files, folder] = [useRef<HTMLInputElement>(null), useRef<HTMLInputElement>(null)];
  // Whole folders are no standard's; all browsers know them by this name.
  useEffect(() => folder.current?.setAttribute("webkitdirectory", ""), []);
  const picked = (event: Event): void => {
    const input = event.currentTarget as HTMLInputElement;
    take(input.files ?? []);
    // The same can be picked again.
    input.value = "";
  };
  return (
    <div class={`start-drop${isOver ? " over" : ""}`}>
      <p>{isOver ? "Let go to open it." : "Drop a trace here: its folder, or an archive of it."}</p>
      <div class="start-row">
        <button type="button" class="button" disabled={isBusy} onClick={() => folder.current?.click()}>
          Choose a folder…
        </button>
        <button type="button" class="button" disabled={isBusy} onClick={() => files.current?.click()}>
          Choose files…
        </button>
      </div>
      <p class="faint">Up to {bytesText(bytesMax)} are sent to kymo and kept until it ends. Larger ones are opened by their path.</p>
      <input ref={folder} class="start-hidden" type="file" aria-label="The folder of a trace" tabIndex={-1} onChange={picked} />
      <input ref={files} class="start-hidden" type="file" aria-label="The files of a trace" tabIndex={-1} multiple onChange={picked} />
    </div>
  );
}

function Record({ hints }: { readonly hints: readonly RecordHint[] }): JSX.Element {
  const [copied, setCopied] = useState<string | null>(null);
  const copy = async (command: string): Promise<void> => setCopied((await copyText(command)) ? command : null);
  return (
    <Part title="Record one">
      <ul class="start-record">
        {hints.map(({ command, what }) => (
          <li key={command}>
            <span>{what}</span>
            <div class="start-row">
              <code>{command}</code>
              <button type="button" class="button" aria-label={`Copy ${command}`} onClick={() => void copy(command)}>
                {copied === command ? "Copied" : "Copy"}
              </button>
            </div>
          </li>
        ))}
      </ul>
    </Part>
  );
}
