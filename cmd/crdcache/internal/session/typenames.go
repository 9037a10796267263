package session

import (
	"slices"
	"strings"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/discovery"
)

// SplitTypes takes types as separate arguments and with commas between them, without repetition, and checks
// that they can be names of types.
func SplitTypes(args []string) ([]string, error) {
	var types []string
	for _, arg := range args {
		for name := range strings.SplitSeq(arg, ",") {
			if name == "" {
				return nil, exit.Usagef("%q has an empty type name", arg)
			}
			if parts := strings.Split(name, "/"); len(parts) == 3 {
				return nil, exit.Usagef("%q looks like GROUP/VERSION/RESOURCE: write %s.%s.%s", name, parts[2], parts[1], parts[0])
			}
			if of, object, is := strings.Cut(name, "/"); is {
				return nil, exit.Usagef("%q looks like TYPE/NAME: give the type, and of verbs that read objects one by its name with --field-selector, as in '%s --field-selector metadata.name=%s'", name, of, object)
			}
			if _, err := discovery.ParseName(name); err != nil {
				return nil, exit.Usagef("%v", err)
			}
			if !slices.Contains(types, name) {
				types = append(types, name)
			}
		}
	}
	return types, nil
}
