// BLAKE2b (RFC 7693) with a personalization, which the cryptography of Node does not have.

const BLOCK = 128; // bytes
const ROUNDS = 12;
const PERSONALIZATION_AT = 48; // in the parameter block of 64 bytes
// The fractions of the square roots of the first eight primes, as in SHA-512.
const START = [
  0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n,
  0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n,
];
const ORDERS = [
  "0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
  "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0",
].map((order) => Array.from(order, (digit) => Number.parseInt(digit, 16)));
const QUARTERS = [
  [0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15], // columns
  [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14], // diagonals
];

/** The digest of a text in UTF-8, in hex; `length` is its bytes, and the personalization has at most 16 letters of ASCII. */
export function blake2b(text, length, personalization) {
  const parameters = Buffer.alloc(64);
  parameters.set([length, 0, 1, 1]); // no key, one leaf
  parameters.write(personalization, PERSONALIZATION_AT, "ascii");
  const state = BigUint64Array.from(START, (word, at) => word ^ parameters.readBigUInt64LE(8 * at));
  const message = Buffer.from(text);
  const last = Math.max(0, Math.ceil(message.length / BLOCK) - 1);
  for (let number = 0; number <= last; number += 1) {
    const block = Buffer.alloc(BLOCK);
    const end = Math.min(message.length, (number + 1) * BLOCK);
    message.copy(block, 0, number * BLOCK, end);
    compress(state, block, BigInt(end), number === last);
  }
  const digest = Buffer.alloc(64);
  state.forEach((word, at) => digest.writeBigUInt64LE(word, 8 * at));
  return digest.toString("hex", 0, length);
}

function compress(state, block, bytesSoFar, isLast) {
  const v = new BigUint64Array([...state, ...START]);
  v[12] ^= bytesSoFar;
  if (isLast) v[14] = ~v[14];
  const words = BigUint64Array.from({ length: 16 }, (_, at) => block.readBigUInt64LE(8 * at));
  for (let round = 0; round < ROUNDS; round += 1) {
    const order = ORDERS[round % ORDERS.length];
    QUARTERS.forEach(([a, b, c, d], at) => {
      v[a] += v[b] + words[order[2 * at]];
      v[d] = rotated(v[d] ^ v[a], 32n);
      v[c] += v[d];
      v[b] = rotated(v[b] ^ v[c], 24n);
      v[a] += v[b] + words[order[2 * at + 1]];
      v[d] = rotated(v[d] ^ v[a], 16n);
      v[c] += v[d];
      v[b] = rotated(v[b] ^ v[c], 63n);
    });
  }
  state.forEach((word, at) => (state[at] = word ^ v[at] ^ v[at + 8]));
}

function rotated(word, bits) {
  return BigInt.asUintN(64, (word >> bits) | (word << (64n - bits)));
}
