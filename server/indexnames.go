package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/indexers"
)

// fieldsWithoutDot are those by which built-in types can be selected, beside the fields with a dot.
var fieldsWithoutDot = []string{"reason", "reportingComponent", "source", "type"}

// checkIndexNames refuses indexes that are named like fields. Indexes are field selectors here, and
// authorizers know fields: the right of a kubelet is one to Pods whose spec.nodeName it is. An index of that
// name, of whatever it is, would be served to it.
func checkIndexNames(config *indexers.Config) error {
	var problems []error
	for _, r := range config.Resources {
		for _, index := range r.Indexes {
			if strings.Contains(index.Name, ".") || slices.Contains(fieldsWithoutDot, index.Name) {
				problems = append(problems,
					fmt.Errorf("the resource %q of an index config: the index %q is named like a field, which authorizers may know by that name: give it another one, without dots", r.Name, index.Name))
			}
		}
	}
	return errors.Join(problems...)
}
