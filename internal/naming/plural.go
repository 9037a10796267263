package naming

import "strings"

// GuessPlural returns the plural that tools like controller-gen give to a kind by default. It replaces
// apimachinery's UnsafeGuessKindToResource, which makes gatewaies of Gateway and meshs of Mesh.
func GuessPlural(kind string) string {
	name := strings.ToLower(kind)
	hasSuffix := func(suffixes ...string) bool {
		for _, suffix := range suffixes {
			if strings.HasSuffix(name, suffix) {
				return true
			}
		}
		return false
	}
	switch {
	case hasSuffix("endpoints", "metadata"):
		return name
	case hasSuffix("ay", "ey", "iy", "oy", "uy"):
		return name + "s"
	case hasSuffix("y"):
		return strings.TrimSuffix(name, "y") + "ies"
	case hasSuffix("s", "x", "ch", "sh"):
		return name + "es"
	}
	return name + "s"
}
