package guard

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// sizeLimit limits the size of a room: a folder without its subfolders that are rooms.
type sizeLimit struct {
	folder string
	// lines is the number of lines of Go without tests.
	lines int
}

// sizeLimits are the current limits. A commit that raises one states the reason. A commit that shrinks a
// room by more than slack lines lowers the limit of the room.
var sizeLimits = []sizeLimit{
	{"dynamicinformer", 6742},
	{"discovery", 3898},
	{"indexers", 9867},
	{"indexers/query", 5388},
	{"indexers/references", 1419},
	{"internal/codec", 597},
	{"internal/requests", 3662},
	{"internal/packed", 3279},
	{"internal/informer", 7291},
	{"internal/store", 4887},
	{"internal/follow", 1199},
	{"internal/health", 1684},
	{"internal/persist", 877},
	{"internal/queue", 425},
	{"internal/jsonpath", 3644},
	{"internal/jsontext", 2210},
	{"internal/manifest", 1428},
	{"internal/testkit", 1114},
	{"internal/apiserver", 2839},
	{"internal", 1409},
	{"snapshot", 1407},
	{"storage", 1967},
	{"readapi", 3617},
	{"readapi/live", 2803},
	{"readapi/testcluster", 857},
	{"web", 4656},
	{"cmd", 19670},
	{"controllerruntime", 6360},
	{"metrics", 601},
	{"cel", 600},
	{"server", 4106},
	{"shard", 1559},
	{"compat", 360},
	{"examples", 485},
	{"bench", 6077},
	{"integration", 4020},
	{"sandbox", 1816},
	{"packaging", 0},
	{"testdata", 0},
}

const (
	// slack is the number of lines that a room may have below its limit.
	slack       = 150
	maxPackages = 75
	// maxTypes is the number of types that go doc dynamicinformer shows.
	maxTypes = 30
	// maxNames is the number of names that the public packages of the root module export, methods included.
	maxNames = 973
)

// roomOf returns the index of the room that a file belongs to, or -1.
func roomOf(rooms []sizeLimit, file string) int {
	found := -1
	for i, r := range rooms {
		if isWithin(file, r.folder) && (found < 0 || len(r.folder) > len(rooms[found].folder)) {
			found = i
		}
	}
	return found
}

// roomSizes returns the sizes of the rooms, and an error for each file outside all rooms.
func roomSizes(rooms []sizeLimit, files map[string][]byte) (sizes []sizeLimit, violations []string) {
	sizes = make([]sizeLimit, len(rooms))
	for name, source := range files {
		i := roomOf(rooms, name)
		if i < 0 {
			violations = append(violations, fmt.Sprintf("%s is in no room: add its folder to rooms", name))
			continue
		}
		if !strings.HasSuffix(name, "_test.go") {
			sizes[i].lines += bytes.Count(source, []byte("\n"))
		}
	}
	return sizes, violations
}

// sizeViolations compares the sizes of rooms with their limits.
func sizeViolations(rooms []sizeLimit, files map[string][]byte) []string {
	sizes, violations := roomSizes(rooms, files)
	for i, limit := range rooms {
		size := sizes[i]
		if size.lines > limit.lines {
			violations = append(violations, fmt.Sprintf("%s has %d lines of Go without tests, at most %d "+
				"are allowed: delete as many as you add, or raise the limit and state the reason",
				limit.folder, size.lines, limit.lines))
		}
		if size.lines < limit.lines-slack {
			violations = append(violations, fmt.Sprintf("%s has %d lines of Go without tests: "+
				"lower its limit of %d", limit.folder, size.lines, limit.lines))
		}
	}
	return violations
}

func TestRooms(t *testing.T) {
	sources := map[string][]byte{}
	for _, name := range files(t) {
		if strings.HasSuffix(name, ".go") {
			sources[name] = readFile(t, name)
		}
	}
	reportViolations(t, sizeViolations(sizeLimits, sources))
}

func TestOversized(t *testing.T) {
	limits := []sizeLimit{{"a", 2}, {"a/b", 200}}
	sound := bytes.Repeat([]byte("\n"), 100)
	type content = map[string][]byte
	tests := map[string]struct {
		files content
		want  []string
	}{
		"sound":            {content{"a/x.go": sound[:2], "a/b/x.go": sound}, nil},
		"tests are free":   {content{"a/x_test.go": sound, "a/b/x.go": sound}, nil},
		"too large":        {content{"a/x.go": sound, "a/b/x.go": sound}, []string{"a has 100 lines"}},
		"much smaller":     {content{"a/b/x.go": sound[:1]}, []string{"lower its limit of 200"}},
		"within the slack": {content{"a/b/x.go": sound[:60]}, nil},
		"outside":          {content{"c/x.go": nil, "a/b/x.go": sound}, []string{"c/x.go is in no room"}},
		"a similar name":   {content{"ab/x.go": nil, "a/b/x.go": sound}, []string{"ab/x.go is in no room"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { expectViolations(t, sizeViolations(limits, tt.files), tt.want...) })
	}
}

// countExported counts the exported names of a package without its tests: types, and all names with methods.
func (p sourcePackage) countExported() (typeNames, names int) {
	for name, source := range p.files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
		if err != nil || !ast.FileExports(file) {
			continue
		}
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil || ast.IsExported(receiver(decl)) {
					names++
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						typeNames++
						names++
					case *ast.ValueSpec:
						names += len(spec.Names)
					}
				}
			}
		}
	}
	return typeNames, names
}

func TestExported(t *testing.T) {
	p := sourcePackage{"p", map[string][]byte{
		"a.go": []byte("package p\ntype A int\ntype b int\nfunc (A) C() {}\nfunc (b) D() {}\n" +
			"const E, f = 1, 2\nfunc g() {}\n"),
		"a_test.go": []byte("package p\ntype T int\n"),
	}}
	if types, names := p.countExported(); types != 1 || names != 3 {
		t.Errorf("%d types and %d names are exported, want 1 and 3", types, names)
	}
}

func TestNumberOfNames(t *testing.T) {
	var violations []string
	packages, total := 0, 0
	nested := nestedModules(t)
	for _, p := range sourcePackages(t) {
		for name := range p.files {
			if !strings.HasSuffix(name, "_test.go") {
				packages++
				break
			}
		}
		if !p.isPublic(nested) {
			continue
		}
		types, names := p.countExported()
		total += names
		if p.dir == "dynamicinformer" && types > maxTypes {
			violations = append(violations, fmt.Sprintf("%d types, at most %d", types, maxTypes))
		}
	}
	if total > maxNames {
		violations = append(violations, fmt.Sprintf("%d names are exported, at most %d", total, maxNames))
	}
	if packages > maxPackages {
		violations = append(violations, fmt.Sprintf("%d packages, at most %d", packages, maxPackages))
	}
	reportViolations(t, violations)
}
