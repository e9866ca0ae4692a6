package duckdb

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"unsafe"
)

// What follows reads values straight from the engine's vectors; the layouts are
// those of duckdb.h and of the engine's types (src/common/types there).

// valueAt reads the row-th value of a vector of fixed-width values.
func valueAt[T any](data unsafe.Pointer, row int) T {
	var zero T
	return *(*T)(unsafe.Add(data, row*int(unsafe.Sizeof(zero))))
}

// inlined is the longest string that a string_t holds in itself.
const inlined = 12

// bytesAt gives the row-th string of a VARCHAR, BLOB or BIT vector without a copy:
// it is the vector's memory. A string_t is 16 bytes: the length, and then either
// the string itself or four bytes of it and a pointer.
func bytesAt(data unsafe.Pointer, row int) []byte {
	s := unsafe.Add(data, row*16)
	n := int(*(*uint32)(s))
	if n <= inlined {
		return unsafe.Slice((*byte)(unsafe.Add(s, 4)), n)
	}
	return unsafe.Slice(*(**byte)(unsafe.Add(s, 8)), n)
}

func appendBytes(dst []byte, data unsafe.Pointer, row int) []byte {
	return append(dst, bytesAt(data, row)...)
}

// hugeint is a 128-bit integer as the engine stores it.
type hugeint struct {
	lower uint64
	upper int64
}

// appendUUID prints a UUID, which is a hugeint with its top bit turned, so that
// UUIDs sort as their text does.
func appendUUID(dst []byte, data unsafe.Pointer, row int) []byte {
	v := valueAt[hugeint](data, row)
	var b [16]byte
	upper := uint64(v.upper) ^ 1<<63
	for i := range 8 {
		b[i] = byte(upper >> (56 - 8*i))
		b[8+i] = byte(v.lower >> (56 - 8*i))
	}
	for i, group := range [][]byte{b[0:4], b[4:6], b[6:8], b[8:10], b[10:16]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, group)
	}
	return dst
}

// appendBit prints a bit string. Its first byte is the number of bits at the start
// of the second that pad.
func appendBit(dst []byte, data unsafe.Pointer, row int) []byte {
	b := bytesAt(data, row)
	if len(b) < 2 {
		return dst
	}
	for i := int(b[0]); i < 8*(len(b)-1); i++ {
		dst = append(dst, '0'+b[1+i/8]>>(7-i%8)&1)
	}
	return dst
}

// appendBigNum prints a BIGNUM: three bytes of sign and length, then the
// magnitude, its high byte first. A negative number has every bit turned, so
// that numbers sort as their bytes do.
func appendBigNum(dst []byte, data unsafe.Pointer, row int) []byte {
	b := bytesAt(data, row)
	if len(b) < 3 {
		return append(dst, '0')
	}
	magnitude := append([]byte(nil), b[3:]...)
	negative := b[0]&0x80 == 0
	if negative {
		for i := range magnitude {
			magnitude[i] = ^magnitude[i]
		}
	}
	n := new(big.Int).SetBytes(magnitude)
	if negative {
		n.Neg(n)
	}
	return n.Append(dst, 10)
}

// maxZoneOffset is what the engine counts a TIMETZ's offset down from, in seconds.
const maxZoneOffset = 16*60*60 - 1

// appendTimeTZ prints a TIMETZ: 40 bits of microseconds, 24 of the offset.
func appendTimeTZ(dst []byte, data unsafe.Pointer, row int) []byte {
	bits := valueAt[uint64](data, row)
	micros := int64(bits >> 24)
	seconds := micros / 1e6
	dst = fmt.Appendf(dst, "%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	if fraction := micros % 1e6; fraction != 0 {
		dst = fmt.Appendf(dst, ".%06d", fraction)
		for dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
	}
	offset := maxZoneOffset - int64(bits&0xFFFFFF)
	sign := byte('+')
	if offset < 0 {
		sign, offset = '-', -offset
	}
	dst = fmt.Appendf(append(dst, sign), "%02d", offset/3600)
	if rest := offset % 3600; rest != 0 {
		dst = fmt.Appendf(dst, ":%02d", rest/60)
		if rest %= 60; rest != 0 {
			dst = fmt.Appendf(dst, ":%02d", rest)
		}
	}
	return dst
}
