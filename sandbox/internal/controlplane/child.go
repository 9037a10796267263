package controlplane

// childMarker is the first argument of a process that is to become a component.
// It is followed by the component, the directory to delete when orphaned (or
// an empty string), and the component's own arguments.
const childMarker = "__component"

// Child is what a process that was started as a component has to do.
type Child struct {
	Component Component
	// RemoveDir is deleted when the supervisor dies, if it is not empty.
	RemoveDir string
	// Args are the component's own arguments.
	Args []string
}

// ParseChild reports whether the program's arguments, os.Args, ask this
// process to become a component, and which.
func ParseChild(args []string) (Child, bool) {
	if len(args) < 4 || args[1] != childMarker {
		return Child{}, false
	}
	return Child{Component: Component(args[2]), RemoveDir: args[3], Args: args[4:]}, true
}

// arguments is the inverse of ParseChild, without the program's name.
func (c Child) arguments() []string {
	return append([]string{childMarker, string(c.Component), c.RemoveDir}, c.Args...)
}
