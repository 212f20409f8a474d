// The badge that says how well the traces are known: how far reading is, which parts are missing or cannot be trusted; and the list of these.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Status } from "../model/catalogue.ts";
import { duration, timeText } from "../model/clock.ts";
import { advice } from "../model/fault.ts";
import { isRecording } from "../model/live.ts";
import { healthOf, whyOf, type Finding, type Findings } from "../model/findings.ts";
import { uncounted } from "../model/recording.ts";
import { clockOf, wentTo, type State } from "../state/viewer.ts";
import { minus, nanos } from "../units/time.ts";
import { usePick } from "./hooks.ts";
import { copyText } from "./leaving.ts";
import { useFlash } from "./live-chip.tsx";
import { Modal } from "./modal.tsx";
import type { Page } from "./page.ts";
import "./health.css";
import { counted } from "../units/counted.ts";

/** A recording is read several times a second: the badge tells of reading that takes so long at least. */
const LONG_MS = 2_000;
/** As many losses are told one by one. */
const LOSSES_SHOWN = 50;

export function Badge({ page }: { readonly page: Page }): JSX.Element {
  const { store } = page;
  const [status, connection, isFiltering, found, fault, recording] = usePick(store, (state) => [state.status, state.connection, state.isFiltering, state.findings, state.fault, state.recording] as const);
  const [isOpen, setOpen] = useState(false);
  // That more is missing than before is seen for a moment.
  const flash = useFlash(status?.lost ?? 0n);
  if (connection === "lost" || connection === "refused") {
    return (
      <span class="badge bad" role="status" title={advice(connection === "lost" ? "unreachable" : "token")}>
        {connection === "lost" ? "no answer" : "not allowed"}
      </span>
    );
  }
  if (status === null) {
    // Why is where the timeline would be.
    return (
      <span class={`badge ${fault === null ? "" : "bad"}`} role="status">
        {fault === null ? "opening" : "nothing to show"}
      </span>
    );
  }
  const findings = { ...found, findings: [...found.findings, ...uncounted(recording)] };
  const health = healthOf(findings, status.lost);
  const said = summary(status, findings);
  // A recording is never complete: how far behind that is, is said beside it.
  const isUsual = isRecording(status) && status.state !== "failed" && (status.etaMs ?? 0) < LONG_MS;
  const reading = isUsual && !isFiltering ? null : readingOf(status, isFiltering);
  return (
    <>
      <span class="facts">
        {duration(nanos(status.extent.end - status.extent.begin - 1n))}
        {status.events === null ? "" : ` · ${counted(status.events, "event")}`}
      </span>
      {said === "" ? null : (
        <button type="button" class={`badge ${health === "bad" ? "bad" : "doubtful"} ${status.lost === 0n ? "" : `lost ${flash}`}`} aria-haspopup="dialog" title="What is missing of the traces or cannot be trusted, why that matters, and what to do" onClick={() => setOpen(true)}>
          {said}
        </button>
      )}
      {reading === null ? null : (
        <span class={`badge ${reading.tone}`} role="status" title={reading.hint}>
          {reading.text}
        </span>
      )}
      {isOpen ? <Health page={page} status={status} findings={findings} closed={() => setOpen(false)} /> : null}
    </>
  );
}

/** The problems of the traces, in two or three words; nothing if there are none. */
function summary(status: Status, { findings }: Findings): string {
  const lost = status.lost === 0n ? [] : [`${status.lost === null ? "events" : status.lost.toLocaleString("en")} lost`];
  // Losses are findings of each file, and told together.
  const others = findings.filter(({ rule }) => status.lost === 0n || (rule !== "events-discarded" && rule !== "packets-lost")).length;
  return [...lost, ...(others === 0 ? [] : [counted(others, "finding")])].join(", ");
}

function readingOf(status: Status, isFiltering: boolean): { readonly text: string; readonly tone: string; readonly hint: string } {
  if (isFiltering && status.state === "complete") {
    return { text: "filtering", tone: "busy", hint: "The traces have been read; the filter is still being applied to the hatched parts." };
  }
  switch (status.state) {
    case "building":
      return { text: progress(status), tone: "busy", hint: "What is hatched is not read yet; you can look around meanwhile." };
    case "complete":
      return { text: "complete", tone: "good", hint: status.failure ?? "The traces have been read: all shown data is exact." };
    case "failed":
      return { text: "failed", tone: "bad", hint: status.failure ?? "Reading ended early." };
  }
}

/** How much is read, and how long the rest takes. */
export function progress(status: Status): string {
  const percent = status.totalBytes === 0 ? 0 : Math.floor((100 * status.doneBytes) / status.totalBytes);
  const rest = status.etaMs === null ? "" : `, ${duration(nanos(Math.round(status.etaMs) * 1_000_000), 2)} left`;
  return `${percent} % read${rest}`;
}

interface HealthOptions {
  readonly page: Page;
  readonly status: Status;
  readonly findings: Findings;
  readonly closed: () => void;
}

function Health({ page, status, findings, closed }: HealthOptions): JSX.Element {
  const command = `kymo check ${page.store.state.traces.map(({ path, name }) => quoted(path ?? name)).join(" ")}`;
  return (
    <Modal title="What is known of the traces, and how well" name="health" closed={closed}>
      {(close) => (
        <>
          <ul class="findings">
            {findings.findings.map((finding, index) => (
              <Found key={index} finding={finding} />
            ))}
          </ul>
          <Losses page={page} status={status} findings={findings} close={close} />
          <p>
            Every event, and what index files say, is looked at by <code>{command}</code>{" "}
            <button type="button" class="button" onClick={() => void copyText(command)}>
              Copy
            </button>
          </p>
        </>
      )}
    </Modal>
  );
}

function quoted(path: string): string {
  return /^[\w./:@%+,-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}

function Found({ finding }: { readonly finding: Finding }): JSX.Element {
  const { severity, message, place, help, times } = finding;
  const why = whyOf(finding);
  return (
    <li class={severity}>
      <strong>{severity}:</strong> {message}
      {times > 1 ? `, and ${(times - 1).toLocaleString("en")} more in this file` : ""} <span class="faint">{place}</span>
      {why === "" ? null : <p>{why}</p>}
      {help === null ? null : <p class="faint">What to do: {help}.</p>}
    </li>
  );
}

/** When events were lost; each leads there. */
function Losses({ page, status, findings, close }: Omit<HealthOptions, "closed"> & { readonly close: () => void }): JSX.Element | null {
  const { losses, omitted } = findings;
  if (losses.length === 0) {
    return null;
  }
  const clock = clockOf(page.store.state);
  const many = losses.length + omitted;
  const show = (state: State, index: number): State => {
    const loss = losses[index];
    return loss === undefined ? state : wentTo(state, around(loss));
  };
  return (
    <>
      <h3>When events were lost: {many === 1 ? "once" : `${many.toLocaleString("en")} times`}</h3>
      <p class="faint">On the timeline and in the overview these times have red marks{status.lost === null ? "; their number of events is unknown" : ""}.</p>
      <ul class="losses">
        {losses.slice(0, LOSSES_SHOWN).map(({ begin, end }, index) => (
          <li key={index}>
            <button
              type="button"
              class="plain link"
              onClick={() => {
                page.store.update((now) => show(now, index));
                close();
              }}
            >
              {timeText(clock, begin)} + {duration(minus(end, begin), 4)}
            </button>
          </li>
        ))}
      </ul>
      {many > LOSSES_SHOWN ? <p class="faint">The first {LOSSES_SHOWN} of them.</p> : null}
    </>
  );
}

/** A loss with as much around it. */
function around({ begin, end }: { readonly begin: bigint; readonly end: bigint }): { begin: ReturnType<typeof nanos>; span: ReturnType<typeof nanos> } {
  const span = end > begin ? end - begin : 1n;
  return { begin: nanos(begin - span), span: nanos(3n * span) };
}
