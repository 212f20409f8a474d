// The arrows between rows that are on the screen, for drawing and pointing.

import { NO_ARROWS, arrowBetween, arrowTracks, arrowsOn, nearestBundle, nearestLine, timeOfArrow, type ArrowLayout, type ArrowLine, type Screen } from "../../model/arrows.ts";
import type { Track } from "../../model/catalogue.ts";
import type { Frame } from "../../model/geometry.ts";
import { sameItem } from "../../model/items.ts";
import { nameOf } from "../../model/rows.ts";
import { fixedHeight } from "../../model/screen.ts";
import type { Spot } from "../../model/spot.ts";
import { trackNumbered, trackOf } from "../../state/item.ts";
import { widthOf, type State } from "../../state/viewer.ts";
import { devicePixels } from "../../units/screen.ts";
import type { TrackNumber } from "../../units/tiles.ts";
import { nanos, plus } from "../../units/time.ts";
import type { Page } from "../page.ts";
import { piecesOf } from "../words.ts";
import type { Target } from "./hinter.ts";
import type { Place } from "./point.ts";

/** A pointer as near to an arrow, in CSS pixels, means it. */
const REACH_CSS_PX = 3;

interface Scene {
  readonly frame: Frame;
  readonly screen: Screen;
}

function sceneOf(state: State): Scene | null {
  const { status, view, size, rows, scroll, catalogue } = state;
  if (status === null || view === null) {
    return null;
  }
  const frame = { view, width: widthOf(state), origin: status.extent.begin };
  return { frame, screen: { rows, tracks: catalogue.tracks, scroll, fixed: fixedHeight({ rows, size }), height: devicePixels(size.height, size.ratio), ratio: size.ratio } };
}

/** All arrows of which an end is on the screen; none if they are switched off. */
export function arrowsShown(page: Page, state: State): ArrowLayout {
  const scene = sceneOf(state);
  if (scene === null || !state.arrows) {
    return NO_ARROWS;
  }
  const contents = arrowTracks(state.catalogue.tracks).map((track) => ({ track: track.id, pieces: piecesOf(page, state, track) }));
  return arrowsOn(scene.frame, scene.screen, contents);
}

/** The arrow that is picked, which is drawn wherever its ends are known. */
export function pickedArrow(page: Page, state: State): ArrowLine | null {
  const scene = sceneOf(state);
  const { item, items } = page.picker.picked.state;
  const [first] = items;
  if (scene === null || first?.kind !== "arrow" || !sameItem(item, state.item)) {
    return null;
  }
  return arrowBetween(scene.frame, scene.screen, first);
}

/** The arrow at a place of the rows. */
export function arrowAt(page: Page, state: State, { x, y }: Place): { readonly track: Track; readonly spot: Spot } | null {
  const { ratio } = state.size;
  const found = nearestLine(arrowsShown(page, state).exact, x * ratio, y * ratio, REACH_CSS_PX * ratio);
  const track = found === null ? null : trackOf(state, found.track);
  if (found === null || track === null) {
    return null;
  }
  const time = timeOfArrow(found);
  return { track, spot: { time, until: plus(time, nanos(1)), extent: null } };
}

/** Those arrows at a place that are drawn as one. */
export function bundleAt(page: Page, state: State, { x, y }: Place): Target | null {
  const { ratio } = state.size;
  const found = nearestBundle(arrowsShown(page, state).bundles, x * ratio, y * ratio, REACH_CSS_PX * ratio);
  const track = found === null ? null : trackOf(state, found.track);
  if (found === null || track === null) {
    return null;
  }
  const name = (number: TrackNumber | null): string => {
    const end = number === null ? null : trackNumbered(state, number);
    return end === null ? "rows that are not on the screen" : nameOf(end);
  };
  const many = found.count.toLocaleString("en");
  return { track, spot: null, words: `${track.name}: ${many} from ${name(found.from)} to ${name(found.to)}` };
}
