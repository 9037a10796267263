package decode

import (
	"sync/atomic"
	"unsafe"

	"github.com/crdcache/crdcache/internal/jsontext"
)

type structCodec struct {
	fields []field
	byName map[string]int
	// lastFirstField is the index of the first field of the previous object.
	lastFirstField atomic.Uint32
	// fallback decodes structs that the fast path does not support; nil if it does.
	fallback codec
}

// maxFields limits the number of fields, because a bit set records which were seen.
const maxFields = 256

// decode is a codec. It skips unknown fields, and fails on duplicates, which sigs.k8s.io/json merges.
func (s *structCodec) decode(d *document, i int, p unsafe.Pointer) int {
	if s.fallback != nil {
		return s.fallback(d, i, p)
	}
	if d.byteAt(i) != '{' {
		return d.null(i)
	}
	isOutermost := d.outermost == s
	d.outermost = nil
	i = d.skipSpace(i + 1)
	if d.byteAt(i) == '}' {
		return i + 1
	}
	missing := len(s.fields)
	var seenFields [maxFields / 64]uint64
	guess := &s.lastFirstField
	for more := true; more; {
		index, value := s.key(d, i, guess)
		if value < 0 {
			return failedOffset
		}
		var end int
		if index < 0 {
			end = d.skip(value)
		} else {
			bit := uint64(1) << (index % 64)
			if seenFields[index/64]&bit != 0 {
				return failedOffset
			}
			seenFields[index/64] |= bit
			f := &s.fields[index]
			if f.isText {
				end = stringCodec(d, value, unsafe.Add(p, f.offset))
			} else {
				end = f.decode(d, value, unsafe.Add(p, f.offset))
			}
			guess = &f.likelyNext
			if missing--; missing == 0 && isOutermost && end >= 0 {
				return len(d.data)
			}
		}
		if end < 0 {
			return failedOffset
		}
		if end < len(d.data)-1 && d.data[end] == ',' && d.data[end+1] == '"' { // no white space
			i = end + 1
			continue
		}
		i, more = d.hasNext(end, '}')
	}
	return i
}

// key reads the key at i. It returns the index of its field, negative if there is none, and the offset of
// the value.
func (s *structCodec) key(d *document, i int, guess *atomic.Uint32) (index, value int) {
	if d.byteAt(i) != '"' {
		return 0, failedOffset
	}
	if guessed := int(guess.Load()); guessed < len(s.fields) {
		if end := s.fields[guessed].match(d.data, i+1); end >= 0 {
			return guessed, d.skipSpace(end)
		}
	}
	end, ok := jsontext.ScanPlain(d.data, i+1)
	if !ok {
		return 0, failedOffset
	}
	value = jsontext.SkipColon(d.data, end)
	if value < 0 {
		return 0, failedOffset
	}
	index, ok = s.byName[string(d.data[i+1:end-1])]
	if !ok {
		return -1, value
	}
	guess.Store(uint32(index))
	return index, value
}
