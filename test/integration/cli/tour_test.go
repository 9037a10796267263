package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// ageColumnPattern matches a row that ends with an age, which only a server knows.
var ageColumnPattern = regexp.MustCompile(`(?m)^(.*\S) +(AGE|[0-9]+[smhd][0-9smhd]*)$`)

// withoutAgeColumn removes the age column and repeated spaces, because the width of a column depends on its
// content.
func withoutAgeColumn(text string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		row := ageColumnPattern.ReplaceAllString(strings.TrimRight(line, " \n"), "$1")
		lines = append(lines, strings.Join(strings.Fields(row), " "))
	}
	return strings.Join(lines, "\n")
}

// TestTour runs the commands of docs/tour.md and README.md on a cluster with the objects of their files.
// Without --from, the commands must print the same text. Trees are not compared, because a cluster has the
// UIDs of owners and has more types.
func TestTour(t *testing.T) {
	const data = "../../../testdata"
	harness.InstallCRDs(t, harness.ReadManifests(t, data+"/crds")...)
	harness.Apply(t, harness.ReadManifests(t, data+"/objects")...)
	bin, home := t.TempDir(), t.TempDir()
	if err := os.Symlink(harness.Crdcache(t), filepath.Join(bin, "crdcache")); err != nil {
		t.Fatal(err)
	}
	console := regexp.MustCompile("(?s)```console\n(.*?)```")
	replayed := 0
	for _, page := range []string{"docs/tour.md", "README.md"} {
		text, err := os.ReadFile("../../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range console.FindAllStringSubmatch(string(text), -1) {
			for _, step := range strings.Split(block[1], "$ ")[1:] {
				line, want, _ := strings.Cut(step, "\n")
				if !strings.Contains(line, "--from") || strings.HasPrefix(line, "crdcache tree") {
					continue
				}
				live := regexp.MustCompile(` --from objects/\S*-(\w+)\.yaml`).ReplaceAllString(line, " -n $1")
				live = regexp.MustCompile(` --from (crds|objects)`).ReplaceAllString(live, "")
				if !regexp.MustCompile(` (-n|-A|resources|suggest|dump workload/)`).MatchString(live) {
					live += " -A" // files are read in all namespaces
				}
				if strings.Contains(live, "dump workload/") {
					live += " -n edge"
				}
				cmd := newCommand(t, "sh", "-c", live)
				cmd.Dir = data
				cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+home)
				got, _ := cmd.CombinedOutput() // the page also shows errors
				if diff := cmp.Diff(withoutAgeColumn(want), withoutAgeColumn(string(got))); diff != "" {
					t.Errorf("%s: $ %s\n(-page +cluster)\n%s", page, live, diff)
				}
				replayed++
			}
		}
	}
	if replayed < 10 {
		t.Errorf("the pages have only %d commands, want at least 10", replayed)
	}
}
