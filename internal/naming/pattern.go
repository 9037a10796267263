// Package naming matches names with patterns, labels with selectors and texts with regular expressions, in
// bounded time. It also formats store keys and names of resource types, compares resource versions, and
// lists the types of Kubernetes 1.37.
//
// There are two dialects of patterns. In configs, namespaces and commands "*" matches any sequence of
// characters and no other character is special. Selections of subscriptions use the dialect of path.Match.
package naming

import (
	"path"
	"strings"
)

// Match reports whether a name matches a pattern, in which "*" matches any characters. Every text is valid.
func Match(pattern, name string) bool {
	prefix, rest, hasStar := strings.Cut(pattern, "*")
	if !hasStar {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, prefix)
	for ok {
		part, after, hasStar := strings.Cut(rest, "*")
		if !hasStar {
			return strings.HasSuffix(name, part)
		}
		_, name, ok = strings.Cut(name, part)
		rest = after
	}
	return false
}

// IsGlob reports whether a text contains special characters of path.Match.
func IsGlob(text string) bool { return strings.ContainsAny(text, `*?[\`) }

// CheckGlob returns path.ErrBadPattern for an invalid pattern of path.Match.
func CheckGlob(glob string) error {
	_, err := path.Match(glob, "")
	return err
}

// MatchGlob reports whether a name without slashes matches a pattern of path.Match. An invalid pattern
// matches nothing.
func MatchGlob(glob, name string) bool {
	if !IsGlob(glob) {
		return glob == name
	}
	ok, err := path.Match(glob, name)
	return ok && err == nil
}
