package answers

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Group is the API group of testdata, and groupPath its path.
const (
	Group     = "demo.crdcache.dev"
	groupPath = "/apis/" + Group + "/v1/"
)

// Question is a request for both servers. In its path, NOW is the version of a list of workloads on that
// server, and TOKEN is a continue token.
type Question struct{ Method, Path, Accept string }

// Writes reports whether the method is not a read.
func (q Question) Writes() bool { return q.Method != http.MethodGet && q.Method != http.MethodHead }

// Suite is a named list of questions.
type Suite struct {
	Name      string
	Questions []Question
}

// Suites returns all suites, with about 3,600 questions.
func Suites() []Suite {
	return []Suite{
		{"list parameters", listParameters()}, {"watch parameters", watchParameters()}, {"parameter values",
			parameterValues()},
		{"accept headers", acceptHeaders()}, {"methods", methods()}, {"paths", paths()},
		{"label selectors", labelSelectors()}, {"field selectors", fieldSelectors()},
	}
}

// query joins alternating names and values, without empty values.
func query(pairs ...string) string {
	var parts []string
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			parts = append(parts, pair[0]+"="+url.QueryEscape(pair[1]))
		}
	}
	return strings.Join(parts, "&")
}

// combinations calls call with every combination of one value for each name, in the form that query accepts.
func combinations(names []string, values [][]string, call func(pairs []string)) {
	var choose func(pairs []string)
	choose = func(pairs []string) {
		at := len(pairs) / 2
		if at == len(names) {
			call(pairs)
			return
		}
		for _, value := range values[at] {
			choose(append(pairs[:len(pairs):len(pairs)], names[at], value))
		}
	}
	choose(nil)
}
