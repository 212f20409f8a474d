// The page while traces are recorded that have no event yet. Of a session that keeps the newest events in memory nothing is seen before a
// snapshot, however long one waits: then the page says so, and takes one.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiFault } from "../api/client.ts";
import { askRecording, takeSnapshot } from "../api/recording.ts";
import type { Recording } from "../model/recording.ts";
import { sentence } from "./item/picker.ts";
import type { Page } from "./page.ts";

/** The recorder is asked that often. */
const ASK_MS = 2_000;

export function Awaited({ page, waiting }: { readonly page: Page; readonly waiting: string | null }): JSX.Element {
  const recording = useRecording(page);
  const needsSnapshot = recording?.mode === "overwrite" && recording.state === "recording";
  return (
    <main class="app">
      <div class="notice" role="status">
        <h1 class="mark">Kymograph</h1>
        <strong>{needsSnapshot ? "Waiting for a snapshot." : "Waiting for the first events."}</strong>
        {needsSnapshot ? <NeedsSnapshot page={page} recording={recording} /> : <span>{waiting ?? "The timeline begins as soon as the recorder has some."}</span>}
      </div>
    </main>
  );
}

function NeedsSnapshot({ page, recording: { session } }: { readonly page: Page; readonly recording: Recording }): JSX.Element {
  const [isAsking, ask] = useState(false);
  const [failure, fail] = useState<string | null>(null);
  const snapshot = async (): Promise<void> => {
    ask(true);
    fail(null);
    try {
      const { snapshot: taken } = await takeSnapshot(page.client);
      fail(taken.events > 0 ? null : "It had no events yet.");
    } catch (error) {
      fail(sentence(error instanceof ApiFault ? error.message : String(error)));
    }
    ask(false);
  };
  return (
    <>
      <span>
        The session “{session}” keeps what is newest in memory, and writes nothing before somebody takes a snapshot: here, or by <code>kymo snapshot {session}</code>.
      </span>
      <button type="button" class="button" disabled={isAsking} onClick={() => void snapshot()}>
        Take a snapshot
      </button>
      {failure === null ? null : <span class="bad-text">{failure}</span>}
    </>
  );
}

/** The recorder of the awaited traces, as far as the server knows. */
function useRecording({ client }: Page): Recording | null {
  const [recording, found] = useState<Recording | null>(null);
  useEffect(() => {
    // An unknown recorder is no reason to say anything: the page asks again.
    const ask = (): void => void askRecording(client).then(found, () => undefined);
    ask();
    const timer = setInterval(ask, ASK_MS);
    return () => clearInterval(timer);
  }, [client]);
  return recording;
}
