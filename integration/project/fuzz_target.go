package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// target is a fuzz test.
type target struct {
	// path is the import path of the package.
	path, name string
	// dir is the folder of the package.
	dir string
}

var declaration = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(\w+ \*testing\.F\)`)

// key returns the key of the test in results.
func (t target) key() string { return strings.TrimPrefix(t.path, project) + " " + t.name }

// findAllTargets returns the fuzz tests of modules with keys that match a regular expression. It reads the
// sources, because go test -list would build all tests.
func findAllTargets(ctx context.Context, modules []string, filter string) ([]target, error) {
	pattern, err := regexp.Compile(filter)
	if err != nil {
		return nil, err
	}
	var targets []target
	for _, module := range modules {
		found, err := findTargets(ctx, module)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("there are no fuzz tests in %s", module)
		}
		targets = append(targets, found...)
	}
	if len(targets) == 0 {
		return nil, errors.New("no modules are named")
	}
	targets = slices.DeleteFunc(targets, func(t target) bool { return !pattern.MatchString(t.key()) })
	if len(targets) == 0 {
		return nil, fmt.Errorf("no fuzz test matches %q", filter)
	}
	return targets, nil
}

// testFilesTemplate prints each test file with the import path of its package.
const testFilesTemplate = `{{$p := .}}{{range .TestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}{{"\n"}}{{end}}` +
	`{{range .XTestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}{{"\n"}}{{end}}`

// findTargets returns the fuzz tests of one module.
func findTargets(ctx context.Context, module string) ([]target, error) {
	command := exec.CommandContext(ctx, "go", "list", "-f", testFilesTemplate, "./...")
	command.Dir, command.Stderr = module, os.Stderr
	listed, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages of %s: %w", module, err)
	}
	var targets []target
	for line := range strings.Lines(string(listed)) {
		path, file, found := strings.Cut(strings.TrimSpace(line), " ")
		if !found {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, match := range declaration.FindAllSubmatch(source, -1) {
			targets = append(targets, target{path: path, name: string(match[1]), dir: filepath.Dir(file)})
		}
	}
	return targets, nil
}

// instrumented are the packages that guide the engine by their coverage: the project's packages, and the
// packages that read JSON and YAML. go test -fuzz also counts client-go. Its hundreds of thousands of
// counters then take most of the time of an execution.
var instrumented = []string{project + "...", "encoding/json/...", "sigs.k8s.io/json/...",
	"sigs.k8s.io/yaml/...", "go.yaml.in/..."}

// testPrograms builds the test program of each package when it is first needed.
type testPrograms struct {
	folder string
	// inputs is the folder in which the go command stores interesting inputs.
	inputs string
	built  map[string]string
}

// newPrograms creates a folder for programs. remove deletes it.
func newPrograms(ctx context.Context) (p *testPrograms, remove func(), err error) {
	cache, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return nil, nil, fmt.Errorf("asking go for its cache: %w", err)
	}
	folder, err := os.MkdirTemp("", "fuzz")
	if err != nil {
		return nil, nil, err
	}
	p = &testPrograms{folder: folder, inputs: filepath.Join(strings.TrimSpace(string(cache)), "fuzz"),
		built: map[string]string{}}
	return p, func() { _ = os.RemoveAll(folder) }, nil // a leftover temporary folder is harmless
}

// programOf returns the test program of the package.
func (p *testPrograms) programOf(ctx context.Context, t target) (string, error) {
	if path := p.built[t.path]; path != "" {
		return path, nil
	}
	path := filepath.Join(p.folder, strings.ReplaceAll(t.path, "/", "_"))
	args := []string{"test", "-c", "-o", path}
	for _, packages := range instrumented {
		args = append(args, "-gcflags="+packages+"=-d=libfuzzer")
	}
	command := exec.CommandContext(ctx, "go", append(args, ".")...)
	command.Dir = t.dir
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the tests of %s: %w\n%s", t.path, err, output)
	}
	p.built[t.path] = path
	return path, nil
}

func (p *testPrograms) fuzz(ctx context.Context, t target,
	each time.Duration, parallel int) (fuzzResult, error) {
	program, err := p.programOf(ctx, t)
	if err != nil {
		return fuzzResult{Failures: 1}, err
	}
	args := []string{
		"-test.run=^$", "-test.fuzz=^" + t.name + "$", "-test.fuzztime=" +
			each.String(), "-test.fuzzminimizetime=10x",
		"-test.fuzzcachedir=" + filepath.Join(p.inputs, filepath.FromSlash(t.path)),
	}
	if parallel > 0 {
		args = append(args, "-test.parallel="+strconv.Itoa(parallel))
	}
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = t.dir
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	start := time.Now()
	err = command.Run()
	r, unreadable := parseFuzzOutput(bytes.NewReader(output.Bytes()))
	r.Seconds = time.Since(start).Seconds()
	if err != nil && !timeWasUp.Match(output.Bytes()) {
		r.Failures = 1
		return r, fmt.Errorf("%w\n%s", err, output.String())
	}
	return r, unreadable
}

// timeWasUp matches a spurious failure that the engine sometimes reports at the end of a test's time.
var timeWasUp = regexp.MustCompile(`(?m)^--- FAIL: \w+ \(.*\)\n    context deadline exceeded$`)

var fuzzProgress = regexp.MustCompile(`^fuzz: elapsed: .*, execs: (\d+) .*new interesting: \d+ \(total: (\d+)\)`)

// baseline matches the progress of a run that still executes the existing inputs.
var baseline = regexp.MustCompile(`^fuzz: elapsed: .*, gathering baseline coverage: `)

// parseFuzzOutput reads the result of a run from the output of go test: the last progress line has the
// totals.
func parseFuzzOutput(output io.Reader) (fuzzResult, error) {
	r, found := fuzzResult{}, false
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		match := fuzzProgress.FindStringSubmatch(lines.Text())
		if match == nil {
			found = found || baseline.MatchString(lines.Text())
			continue
		}
		executions, err := strconv.ParseInt(match[1], 10, 64)
		if err != nil {
			return r, err
		}
		corpus, err := strconv.ParseInt(match[2], 10, 64)
		if err != nil {
			return r, err
		}
		r.Executions, r.Corpus, found = executions, corpus, true
	}
	if !found && lines.Err() == nil {
		return r, errors.New("the output of go test has no number of executions")
	}
	return r, lines.Err()
}
