package config

import (
	"slices"
	"strings"
)

// NearestSpelling returns the candidate that word is probably a misspelling of, or "". Candidates that differ
// only in case come first.
func NearestSpelling(word string, candidates []string) string {
	if synonym := synonyms[strings.ToLower(word)]; slices.Contains(candidates, synonym) {
		return synonym
	}
	best, bestDistance := "", max(len(word)/3, 1)+1
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		if strings.EqualFold(word, c) {
			return c
		}
		if abs(len(word)-len(c)) >= bestDistance {
			continue
		}
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// synonyms maps words of other tools to ours.
var synonyms = map[string]string{
	"jsonpath": "path", "field": "path", "fieldpath": "path", "expression": "path", "expr": "path",
	"integer": "int", "int32": "int", "int64": "int", "boolean": "bool",
	"float": "number", "float64": "number", "double": "number", "decimal": "number",
	"timestamp": "time", "datetime": "time", "date-time": "time", "text": "string", "version": "semver",
	"ipv4": "ip", "ipv6": "ip", "address": "ip", "subnet": "cidr", "default": "missing", "fallbacks": "paths",
	"condition": "when", "filter": "when", "if": "when", "keys": "key", "refs": "references",
	"indices": "indexes",
}

func abs(n int) int { return max(n, -n) }

// longestWord limits the work of distance; longer words are not treated as misspellings.
const longestWord = 128

// distance returns the Damerau-Levenshtein distance of a and b in bytes.
func distance(a, b string) int {
	if len(a) > longestWord || len(b) > longestWord {
		return longestWord
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
