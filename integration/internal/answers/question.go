package answers

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Group is that of the types that are asked for, which testdata declares, and base where they are.
const (
	Group = "demo.crdcache.dev"
	base  = "/apis/" + Group + "/v1/"
)

// Question is a request for several servers. In its path, NOW stands for the version of a list of workloads
// on that server, and TOKEN for what continues one there.
type Question struct{ Method, Path, Accept string }

// Writes reports whether a question asks for anything but to read.
func (q Question) Writes() bool { return q.Method != http.MethodGet && q.Method != http.MethodHead }

// Suite is a number of questions.
type Suite struct {
	Name      string
	Questions []Question
}

// Suites returns all of them, some 3,600 questions.
func Suites() []Suite {
	return []Suite{
		{"list parameters", listParameters()}, {"watch parameters", watchParameters()}, {"parameter values",
			parameterValues()},
		{"accept headers", acceptHeaders()}, {"methods", methods()}, {"paths", paths()},
		{"label selectors", labelSelectors()}, {"field selectors", fieldSelectors()},
	}
}

// query joins names and values in turn, without those that have no value.
func query(pairs ...string) string {
	var parts []string
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			parts = append(parts, pair[0]+"="+url.QueryEscape(pair[1]))
		}
	}
	return strings.Join(parts, "&")
}

// combinations calls with every choice of one value for each name, as query takes it.
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
