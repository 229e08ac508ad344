/** What was typed and not sent, by number of the letter: a look elsewhere loses nothing. */
export interface Draft {
  text: string;
  reason: string;
}

const drafts = new Map<number, Draft>();

export const draftOf = (number: number): Draft | undefined => drafts.get(number);

export function keep(number: number, draft: Draft): void {
  drafts.set(number, draft);
}

export function forget(number: number): void {
  drafts.delete(number);
}
