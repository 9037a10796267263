package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/indexers"
)

// fieldsWithoutDot are field selectors of built-in types without a dot in their names.
var fieldsWithoutDot = []string{"reason", "reportingComponent", "source", "type"}

// checkIndexNames rejects indexes with names like fields. Indexes are field selectors here, and authorizers
// know field selectors: a kubelet may read Pods with its spec.nodeName. An index of that name over any
// other field would give it access to other Pods.
func checkIndexNames(config *indexers.Config) error {
	var problems []error
	for _, r := range config.Resources {
		for _, index := range r.Indexes {
			if strings.Contains(index.Name, ".") || slices.Contains(fieldsWithoutDot, index.Name) {
				problems = append(problems,
					fmt.Errorf("resource %q of an index config: index %q has the name of a field selector, which authorizers might permit: use another name without dots", r.Name, index.Name))
			}
		}
	}
	return errors.Join(problems...)
}
