// Package pattern matches names with patterns and makes store keys of names. There are two dialects of
// patterns. In configs, namespaces and commands "*" matches any run of characters and no other character is
// special. Selections of subscriptions use the dialect of path.Match.
package pattern

import (
	"path"
	"strings"
)

// Match reports whether a name fits a pattern in which "*" stands for any run of characters. Every text is
// such a pattern.
func Match(pattern, name string) bool {
	first, rest, stars := strings.Cut(pattern, "*")
	if !stars {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	for ok {
		part, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(name, part)
		}
		_, name, ok = strings.Cut(name, part)
		rest = after
	}
	return false
}

// IsGlob reports whether a text is more than a name in the dialect of path.Match.
func IsGlob(text string) bool { return strings.ContainsAny(text, `*?[\`) }

// CheckGlob returns path.ErrBadPattern for what is not a pattern in the dialect of path.Match.
func CheckGlob(glob string) error {
	_, err := path.Match(glob, "")
	return err
}

// MatchGlob reports whether a whole name, which has no slashes, fits a pattern in the dialect of path.Match.
// What is not a pattern fits nothing.
func MatchGlob(glob, name string) bool {
	if !IsGlob(glob) {
		return glob == name
	}
	ok, err := path.Match(glob, name)
	return ok && err == nil
}
