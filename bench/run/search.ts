/**
 * The highest rate that holds, between one that is taken to hold and one that is not, by halving. Load is
 * noisy: a rate that failed once is not tried again, so a search never climbs on luck alone.
 */
export async function highestRate(
  low: number,
  high: number,
  steps: number,
  holds: (rate: number) => Promise<boolean>,
): Promise<number> {
  let [least, most] = [low, high];
  for (let step = 0; step < steps; step++) {
    const rate = (least + most) / 2;
    if (await holds(rate)) least = rate;
    else most = rate;
  }
  return least;
}
