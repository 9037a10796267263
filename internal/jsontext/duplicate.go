package jsontext

import (
	"bytes"
	"fmt"
)

// Duplicate looks for an object with a duplicate key. It returns the offset of the second key, and its path
// in the notation of sigs.k8s.io/json, such as spec.ports[0].name. The data must be valid JSON.
func Duplicate(data []byte) (path string, offset int, found bool) {
	u := duplicateFinder{data: data}
	u.checkValue(SkipSpace(data, 0))
	return u.path, u.offset, u.found
}

type duplicateFinder struct {
	data []byte
	// keys are the keys of the open objects, the outermost object first.
	keys   [][]byte
	found  bool
	path   string
	offset int
}

// manyKeys is the number of keys at which a map replaces linear search.
const manyKeys = 16

// checkValue checks the value at i and returns its end. If it finds a duplicate, the end is meaningless.
func (u *duplicateFinder) checkValue(i int) int {
	closing := u.data[i] + 2
	if closing != '}' && closing != ']' {
		end, _ := ScanNumber(u.data, i) // also for a number out of range
		if end < 0 {
			end, _ = Skip(u.data, i, 0)
		}
		return end
	}
	base := len(u.keys)
	var seenKeys map[string]bool
	i, closed := EnterContainer(u.data, i)
	for index := 0; !closed; index++ {
		step, value := []byte(nil), i
		if closing == '}' {
			end, start, encoded := ScanKey(u.data, i)
			if step, value = u.data[i+1:end-1], start; encoded {
				step = AppendUnescaped(nil, step)
			}
			if u.isDuplicate(base, step, seenKeys) {
				u.found, u.path, u.offset = true, string(step), i
				return i
			}
			u.keys = append(u.keys, step)
			if seenKeys = u.indexKeys(base, seenKeys); seenKeys != nil {
				seenKeys[string(step)] = true
			}
		}
		if i = u.checkValue(value); u.found {
			if closing == ']' {
				step = fmt.Appendf(nil, "[%d]", index)
			}
			u.prependPath(string(step))
			return i
		}
		i, closed = NextMember(u.data, i, closing)
	}
	u.keys = u.keys[:base]
	return i
}

func (u *duplicateFinder) isDuplicate(base int, key []byte, seenKeys map[string]bool) bool {
	if seenKeys != nil {
		return seenKeys[string(key)]
	}
	for _, other := range u.keys[base:] {
		if bytes.Equal(other, key) {
			return true
		}
	}
	return false
}

// indexKeys returns a map of the keys of an object with many keys, otherwise nil.
func (u *duplicateFinder) indexKeys(base int, seenKeys map[string]bool) map[string]bool {
	if seenKeys != nil || len(u.keys)-base < manyKeys {
		return seenKeys
	}
	seenKeys = make(map[string]bool, 2*manyKeys)
	for _, key := range u.keys[base:] {
		seenKeys[string(key)] = true
	}
	return seenKeys
}

// prependPath prepends a key or index to the path.
func (u *duplicateFinder) prependPath(step string) {
	if u.path == "" || u.path[0] != '[' {
		step += "."
	}
	u.path = step + u.path
}
