// The notice in the place of rows when there is nothing to show, or in case of a fault: one sentence why, one with advice.

import type { JSX } from "preact";
import { isActive } from "../model/filter.ts";
import { advice } from "../model/fault.ts";
import type { State } from "../state/viewer.ts";
import { usePick } from "./hooks.ts";
import type { Page } from "./page.ts";

interface Words {
  readonly why: string;
  readonly todo: string;
  readonly isBad: boolean;
}

export function Notice({ page }: { readonly page: Page }): JSX.Element | null {
  const { store } = page;
  const [rows] = usePick(store, (state) => [state.rows, state.fault, state.status, state.isCatalogued, state.catalogue] as const);
  const words = wordsFor(store.state);
  if (words === null) {
    return null;
  }
  return (
    <div class={`notice${words.isBad ? " bad" : ""}${rows.length > 0 ? " small" : ""}`} role={words.isBad ? "alert" : "status"}>
      <strong>{words.why}</strong>
      <span>{words.todo}</span>
    </div>
  );
}

/** The words; `null` where the rows speak for themselves. */
export function wordsFor({ fault, status, rows, catalogue, isCatalogued, filter, layout }: State): Words | null {
  if (fault !== null) {
    return { why: sentence(fault.message), todo: advice(fault.kind), isBad: true };
  }
  if (status?.state === "failed") {
    return { why: sentence(status.failure ?? "Reading the traces ended early"), todo: "What was read before that is shown.", isBad: true };
  }
  const problem = status?.live?.problem ?? null;
  if (problem !== null) {
    return { why: sentence(problem), todo: "What was recorded before is shown.", isBad: true };
  }
  if (status === null || !isCatalogued) {
    return { why: "The traces are being opened.", todo: "This takes a moment.", isBad: false };
  }
  if (rows.length > 0) {
    return null;
  }
  if (catalogue.tracks.length > 0) {
    if (layout.active) {
      return { why: "Nothing happens in the window.", todo: "Move it, or press U to show all tracks.", isBad: false };
    }
    if (isActive(filter) && filter.mode !== "dim") {
      return { why: "The filter hides all tracks that are not hidden anyway.", todo: "Take something away from it, or press U to show hidden tracks.", isBad: false };
    }
    return { why: "All tracks are hidden.", todo: "Press U to show them again.", isBad: false };
  }
  return status.state === "building"
    ? { why: "Nothing is read yet.", todo: "Tracks appear as soon as they are found.", isBad: false }
    : { why: "These traces contain nothing to draw.", todo: "`kymo TRACE` summarizes them.", isBad: false };
}

function sentence(text: string): string {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}
