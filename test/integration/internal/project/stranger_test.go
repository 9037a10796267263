package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crdcache/crdcache/test/integration/harness"
)

var (
	documentPath = flag.String("document", "", "the document whose table of modules is replaced; empty means none")
	compile      = flag.Bool("compile", false, "compile all programs, not only README's, and run the commands")
)

// moduleProxy is a GOPROXY with a release of the work tree.
type moduleProxy struct {
	t       *testing.T
	version string
	env     []string
}

// newModuleProxy publishes the work tree. The version depends on its content, because the module cache never
// fetches a version twice.
func newModuleProxy(t *testing.T) *moduleProxy {
	t.Helper()
	r, err := newRelease("../../../..", "v0.0.1-test")
	if err != nil {
		t.Fatal(err)
	}
	version := fmt.Sprintf("v0.0.1-test.h%x", sha256.Sum256([]byte(strings.Join(r.sums, ""))))[:32]
	if r, err = newRelease("../../../..", version); err != nil {
		t.Fatal(err)
	}
	proxy := t.TempDir()
	if err := r.writeProxy(proxy); err != nil {
		t.Fatal(err)
	}
	g := &moduleProxy{t: t, version: version}
	g.env = append(os.Environ(), "GOWORK=off", "GONOSUMDB="+rootModule, "GONOSUMCHECK=1",
		"GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod -modcacherw",
		"GOPROXY=file://"+filepath.ToSlash(proxy)+","+g.run(".", "go", "env", "GOPROXY"))
	cache := g.run(".", "go", "env", "GOMODCACHE")
	t.Cleanup(func() { g.removeFromModuleCache(cache) })
	return g
}

// removeFromModuleCache removes the release from the module cache.
func (g *moduleProxy) removeFromModuleCache(cache string) {
	for _, folder := range publishedFolders {
		unpacked := filepath.Join(cache, filepath.FromSlash(pathOf(folder))+"@"+g.version)
		downloads, err := filepath.Glob(filepath.Join(cache, "cache", "download",
			filepath.FromSlash(pathOf(folder)), "@v", g.version+".*"))
		if err != nil {
			g.t.Error(err)
		}
		for _, name := range append(downloads, unpacked) {
			if err := os.RemoveAll(name); err != nil {
				g.t.Error(err)
			}
		}
	}
}

// run returns the output of a command in a folder.
func (g *moduleProxy) run(dir, name string, args ...string) string {
	g.t.Helper()
	command := exec.CommandContext(g.t.Context(), name, args...)
	command.Dir, command.Env = dir, g.env
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		g.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// make runs go build or go install. The go command loads all packages, and compiles them if compiled is true.
func (g *moduleProxy) make(dir string, compiled bool, command string, args ...string) {
	flag := "-n"
	if compiled {
		flag = "-ldflags=-s -w"
	}
	g.run(dir, "go", append([]string{command, flag}, args...)...)
}

// build builds a program in a new module that requires the modules. It returns the folder of the program.
func (g *moduleProxy) build(source string, compiled bool, modules ...string) string {
	g.t.Helper()
	dir := g.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600); err != nil {
		g.t.Fatal(err)
	}
	g.run(dir, "go", "mod", "init", "example.com/stranger")
	g.run(dir, "go", append([]string{"get"}, modules...)...)
	g.make(dir, compiled, "build", "-o", filepath.Join(dir, "program"), ".")
	goMod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		g.t.Fatal(err)
	}
	if strings.Contains(string(goMod), "replace") {
		g.t.Errorf("go.mod has replace lines:\n%s", goMod)
	}
	return dir
}

// countModules returns the number of modules in the module graph of dir, without the main module.
func (g *moduleProxy) countModules(dir string) int {
	g.t.Helper()
	distinct := map[string]bool{}
	for line := range strings.Lines(g.run(dir, "go", "mod", "graph")) {
		_, required, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, _, _ := strings.Cut(required, "@")
		if name != "go" && name != "toolchain" {
			distinct[name] = true
		}
	}
	return len(distinct)
}

// TestReleasedModules uses the released modules outside of the repository: it builds programs and installs
// commands. Only make nightly compiles all of them.
func TestReleasedModules(t *testing.T) {
	g := newModuleProxy(t)
	t.Run("programs", func(t *testing.T) { g.with(t).testPrograms() })
	t.Run("commands", func(t *testing.T) { g.with(t).testCommands() })
}

func (g *moduleProxy) with(t *testing.T) *moduleProxy { return &moduleProxy{t, g.version, g.env} }

// testPrograms builds a program with each module, and counts the modules of its graph.
func (g *moduleProxy) testPrograms() {
	read := func(name string) string {
		source, err := os.ReadFile(name)
		if err != nil {
			g.t.Fatal(err)
		}
		return string(source)
	}
	_, rest, _ := strings.Cut(read("../../../../README.md"), "```go\n")
	readme, _, found := strings.Cut(rest, "```")
	if !found {
		g.t.Fatal("README.md has no Go program")
	}
	program := func(name string) string { return read(filepath.Join("testdata", name+".go.txt")) }
	ours := func(folder string) string { return pathOf(folder) + "@" + g.version }
	table := "| a program with | modules | difference |\n|---|--:|--:|\n"
	row := func(name, dir string, stock int) int {
		n := g.countModules(dir)
		difference := ""
		if stock > 0 {
			difference = fmt.Sprintf("%+d", n-stock)
		}
		table += fmt.Sprintf("| %s | %d | %s |\n", name, n, difference)
		return n
	}
	dir := g.build(readme, true, ours("."))
	clientGo := g.build(program("clientgo"), *compile, g.required(dir, "k8s.io/client-go"))
	stock := row("client-go's `dynamicinformer`", clientGo, 0)
	row("`dynamicinformer`", dir, stock)
	row("`adapters/metrics`", g.build(program("metrics"), *compile, ours("."), ours("adapters/metrics")), stock)
	row("`adapters/storage/disk`", g.build(program("disk"), *compile, ours(".")), stock)
	dir = g.build(program("manager"), *compile, ours("adapters/controllerruntime"))
	runtime := g.build(program("stock"), *compile, g.required(dir, "sigs.k8s.io/controller-runtime"))
	stock = row("controller-runtime", runtime, 0)
	row("`adapters/controllerruntime`", dir, stock)
	g.t.Log("modules in go mod graph:\n" + table)
	if *documentPath != "" {
		if err := harness.WriteSection(*documentPath, "Modules", table); err != nil {
			g.t.Error(err)
		}
	}
}

// required returns the module with the version that the program in dir uses, such as module@v1.2.3.
func (g *moduleProxy) required(dir, name string) string {
	g.t.Helper()
	return name + "@" + g.run(dir, "go", "list", "-m", "-f", "{{.Version}}", name)
}

// testCommands installs the commands. Compiled ones print the version.
func (g *moduleProxy) testCommands() {
	bin := g.t.TempDir()
	g.env = append(g.env, "GOBIN="+bin)
	for path, argument := range map[string]string{"cmd/crdcache": "version",
		"serving/server/cmd/crdcached": "--version"} {
		g.make(bin, *compile, "install", pathOf(path)+"@"+g.version)
		if !*compile {
			continue
		}
		if out := g.run(bin, filepath.Join(bin, filepath.Base(path)), argument); !strings.Contains(out,
			g.version) {
			g.t.Errorf("%s prints the version %q, want %s", path, out, g.version)
		}
	}
}

// writeProxy writes the modules as files of a GOPROXY.
func (r *release) writeProxy(dir string) error {
	info, err := json.Marshal(map[string]any{"Version": r.version, "Time": time.Unix(0, 0).UTC()})
	if err != nil {
		return err
	}
	for _, m := range r.modules {
		folder := filepath.Join(dir, filepath.FromSlash(m.path), "@v")
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		for name, content := range map[string][]byte{
			"list": []byte(r.version + "\n"), r.version + ".info": info,
			r.version + ".mod": m.goMod, r.version + ".zip": m.zip,
		} {
			if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
