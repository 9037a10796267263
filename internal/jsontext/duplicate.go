package jsontext

import (
	"bytes"
	"strconv"
)

// Duplicate looks for an object that has a key twice. It returns the offset of the second one, and the path to it as
// sigs.k8s.io/json writes it: spec.ports[0].name. The data must be valid JSON.
func Duplicate(data []byte) (path string, offset int, found bool) {
	u := uniqueness{data: data}
	u.value(Space(data, 0))
	return u.path, u.offset, u.found
}

// uniqueness checks one document.
type uniqueness struct {
	data []byte
	// keys are those of the objects that are open, the outermost first.
	keys   [][]byte
	found  bool
	path   string
	offset int
}

// manyKeys is how many keys of an object are compared one by one.
const manyKeys = 16

// value checks the value at i, and returns its end; any offset where it finds a duplicate.
func (u *uniqueness) value(i int) int {
	switch u.data[i] {
	case '{':
		return u.object(i + 1)
	case '[':
		return u.array(i + 1)
	}
	end, _ := Skip(u.data, i, 0)
	return end
}

func (u *uniqueness) object(i int) int {
	base := len(u.keys)
	var many map[string]bool
	for i = Space(u.data, i); u.data[i] != '}'; {
		end, encoded := EncodedText(u.data, i+1)
		key := u.data[i+1 : end-1]
		if encoded {
			key = AppendText(nil, key)
		}
		if u.seen(base, key, many) {
			u.found, u.path, u.offset = true, string(key), i
			return i
		}
		u.keys = append(u.keys, key)
		if many = u.index(base, many); many != nil {
			many[string(key)] = true
		}
		if i = u.value(Colon(u.data, end)); u.found {
			u.within(string(key))
			return i
		}
		if i = Space(u.data, i); u.data[i] == ',' {
			i = Space(u.data, i+1)
		}
	}
	u.keys = u.keys[:base]
	return i + 1
}

// seen reports whether the object whose keys begin at base has a key.
func (u *uniqueness) seen(base int, key []byte, many map[string]bool) bool {
	if many != nil {
		return many[string(key)]
	}
	for _, other := range u.keys[base:] {
		if bytes.Equal(other, key) {
			return true
		}
	}
	return false
}

// index makes a map of the keys of an object once there are many.
func (u *uniqueness) index(base int, many map[string]bool) map[string]bool {
	if many != nil || len(u.keys)-base < manyKeys {
		return many
	}
	many = make(map[string]bool, 2*manyKeys)
	for _, key := range u.keys[base:] {
		many[string(key)] = true
	}
	return many
}

func (u *uniqueness) array(i int) int {
	index := 0
	for i = Space(u.data, i); u.data[i] != ']'; index++ {
		if i = u.value(i); u.found {
			u.within("[" + strconv.Itoa(index) + "]")
			return i
		}
		if i = Space(u.data, i); u.data[i] == ',' {
			i = Space(u.data, i+1)
		}
	}
	return i + 1
}

// within puts a key or an index before the path.
func (u *uniqueness) within(step string) {
	if u.path == "" || u.path[0] != '[' {
		step += "."
	}
	u.path = step + u.path
}
