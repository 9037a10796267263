package guard

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// modulePath is the root module's path, the prefix of all import paths of ours.
const modulePath = "github.com/crdcache/crdcache"

// commandModule is the folder of the command, a module of its own.
const commandModule = "cmd/crdcache"

// root is the path of the repository's root, relative to this package.
const root = "../.."

// goCommand runs the go command in dir below the root and returns its output. The workspace is off, as for
// users of the module. The platform is fixed, because imports depend on it.
func goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = filepath.Join(root, dir)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go %s: %v\n%s%s", strings.Join(args, " "), err, out, exit.Stderr)
		}
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// files lists the tracked files of the repository, slash-separated and relative to the root. Without git,
// it lists all files except build output.
func files(t *testing.T) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "ls-files", "-z")
	cmd.Dir = root
	if out, err := cmd.Output(); err == nil {
		tracked := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		if slices.Contains(tracked, "go.mod") {
			// A deleted file is listed until its deletion is committed.
			return slices.DeleteFunc(tracked, func(name string) bool {
				_, err := os.Lstat(filepath.Join(root, name))
				return err != nil
			})
		}
	}
	return walkFiles(t)
}

// walkFiles lists the files below the root without git.
func walkFiles(t *testing.T) []string {
	t.Helper()
	var found []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", ".cache", "bin"}, name):
			return fs.SkipDir
		case entry.Type().IsRegular():
			found = append(found, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// readFile returns a file's content by its name relative to the root.
func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// reportViolations fails the test for every violation.
func reportViolations(t *testing.T, violations []string) {
	t.Helper()
	for _, v := range violations {
		t.Error(v)
	}
}

// isWithin reports whether path is dir or lies below it; both are slash-separated.
func isWithin(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}

// expectViolations compares violations with the expected ones. Each element of want is a part of the
// violation at the same position.
func expectViolations(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d violations, want %d: %q", len(got), len(want), got)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("violation %d is %q, want it to contain %q", i, got[i], want[i])
		}
	}
}

// TestWorkflows verifies that actions are pinned by commit, and that dependabot updates every module.
func TestWorkflows(t *testing.T) {
	unpinned := regexp.MustCompile(`uses: [^.][^@]*@(?:[^0-9a-f]|.{1,39}(?:[^0-9a-f]|$)).*`)
	updates := string(readFile(t, ".github/dependabot.yml"))
	for _, name := range files(t) {
		if strings.HasPrefix(name, ".github/workflows/") {
			for _, use := range unpinned.FindAllString(string(readFile(t, name)), -1) {
				t.Errorf("%s: pin the action by commit: %s", name, use)
			}
		}
		folder, isModule := strings.CutSuffix("/"+name, "/go.mod")
		if isModule && !strings.Contains(updates, `"`+cmp.Or(folder, "/")+`"`) {
			t.Errorf(".github/dependabot.yml lacks the module %s", name)
		}
	}
}
