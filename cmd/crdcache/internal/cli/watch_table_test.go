package cli_test

import (
	"testing"
)

// expectWhole waits for lines including their spaces.
func (w *runningWatch) expectWhole(want ...string) {
	w.t.Helper()
	for _, line := range want {
		if got := w.nextLine(); got != line {
			w.t.Errorf("got line %q, want %q", got, line)
		}
	}
}

// TestWatchTableGoesOn checks that the table continues when a type is installed again, unless its columns
// differ, and that rows align with the header.
func TestWatchTableGoesOn(t *testing.T) {
	s := newGizmoServer(t)
	s.define("color", "form")
	s.apply(gizmo("a", "", "red"))
	w := watchGizmos(t, "gizmos", "-A", "-s", s.url)
	w.expectWhole(
		"EVENT      NAMESPACE      NAME                   COLOR      FORM",
		"ADDED      web            a                      red        ")
	s.apply(gizmo("a-longer-name", "", "lavender"))
	w.expectWhole("ADDED      web            a-longer-name          lavender   ")
	s.Delete(gizmos.GroupResource(), "web", "a-longer-name")
	w.expectWhole("DELETED    web            a-longer-name          lavender   ")

	s.undefine()
	w.expectWhole("DELETED    web            a                      red        ")
	s.define("color", "form")
	s.apply(gizmo("b", "", "red"))
	w.expectWhole("ADDED      web            b                      red        ")

	s.undefine()
	w.expectWhole("DELETED    web            b                      red        ")
	s.define("form", "color")
	s.apply(gizmo("c", "", "blue"))
	w.expectWhole("",
		"EVENT      NAMESPACE      NAME                   FORM       COLOR",
		"ADDED      web            c                                 blue")
	w.interrupt()
}

// TestDumpTableGoesOn checks the same for dump --watch. Its column widths depend on the first rows, as in
// kubectl.
func TestDumpTableGoesOn(t *testing.T) {
	s := newGizmoServer(t)
	s.define("color", "form")
	s.apply(gizmo("a", "", "lavender"))
	w := start(t, "dump", "gizmos", "-n", "web", "-w", "-s", s.url)
	w.expectWhole("NAME   COLOR      FORM", "a      lavender   ")
	s.undefine()
	w.expectWhole("a      lavender   ")
	s.define("color", "form")
	s.apply(gizmo("b", "", "red"))
	w.expectWhole("b      red        ")
	w.interrupt()
}
