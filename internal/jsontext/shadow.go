package jsontext

import "strings"

// Shadows reports whether a key at the top level is "kind" or "apiVersion" but for upper and lower case. The stock
// serializer finds the kind of an object by a struct, for which such a key counts as well, and keeps the object as a map,
// where it does not. An object with one is left to it.
func Shadows(key string) bool {
	if len(key) < len("kind") || len(key) > 2*len("apiVersion") {
		return false
	}
	switch c := key[0]; {
	case c == 'k' || c == 'K' || c >= 0x80: // also the sign of Kelvin
		return key != "kind" && strings.EqualFold(key, "kind")
	case c == 'a' || c == 'A':
		return key != "apiVersion" && strings.EqualFold(key, "apiVersion")
	}
	return false
}

// shadowed reports whether an object has such a key.
func shadowed(object map[string]any) bool {
	for key := range object {
		if Shadows(key) {
			return true
		}
	}
	return false
}
