package decode

import (
	"sync/atomic"
	"unsafe"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// structCodec decodes a struct.
type structCodec struct {
	fields []field
	byName map[string]int
	// first is which field came first last time.
	first atomic.Uint32
	// general decodes structs that have anything unusual; nil: this one has not.
	general codec
}

// maxFields is how many fields a struct may have: which of them have come is kept in bits.
const maxFields = 256

func (s *structCodec) add(named named, decode codec) {
	if s.byName == nil {
		s.byName = map[string]int{}
	}
	s.byName[named.name] = len(s.fields)
	s.fields = append(s.fields, field{})
	s.fields[len(s.fields)-1].set(named, decode)
}

// decode is a codec. Fields that there are none for are skipped; of a field that comes twice the results are
// merged, which is not for here.
func (s *structCodec) decode(d *document, i int, p unsafe.Pointer) int {
	if s.general != nil {
		return s.general(d, i, p)
	}
	if d.at(i) != '{' {
		return d.null(i)
	}
	top := d.top == s
	d.top = nil
	i = d.space(i + 1)
	if d.at(i) == '}' {
		return i + 1
	}
	missing := len(s.fields)
	var seen [maxFields / 64]uint64
	guess := &s.first
	for more := true; more; {
		at, value := s.key(d, i, guess)
		if value < 0 {
			return failed
		}
		var end int
		if at < 0 {
			end = d.skip(value)
		} else {
			bit := uint64(1) << (at % 64)
			if seen[at/64]&bit != 0 {
				return failed
			}
			seen[at/64] |= bit
			f := &s.fields[at]
			if f.isText {
				end = stringCodec(d, value, unsafe.Add(p, f.offset))
			} else {
				end = f.decode(d, value, unsafe.Add(p, f.offset))
			}
			guess = &f.next
			if missing--; missing == 0 && top && end >= 0 {
				return len(d.data)
			}
		}
		if end < 0 {
			return failed
		}
		if end < len(d.data)-1 && d.data[end] == ',' && d.data[end+1] == '"' { // as API servers write it
			i = end + 1
			continue
		}
		i, more = d.more(end, '}')
	}
	return i
}

// key reads the key at i. It returns which field it is of, or a negative number for none, and where its value
// is.
func (s *structCodec) key(d *document, i int, guess *atomic.Uint32) (at, value int) {
	if d.at(i) != '"' {
		return 0, failed
	}
	if guessed := int(guess.Load()); guessed < len(s.fields) {
		if end := s.fields[guessed].match(d.data, i+1); end >= 0 {
			return guessed, d.space(end)
		}
	}
	end, ok := jsontext.PlainText(d.data, i+1)
	if !ok {
		return 0, failed
	}
	value = jsontext.Colon(d.data, end)
	if value < 0 {
		return 0, failed
	}
	at, ok = s.byName[string(d.data[i+1:end-1])]
	if !ok {
		return -1, value
	}
	guess.Store(uint32(at))
	return at, value
}
