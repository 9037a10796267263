package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// rootModule is the path of the root module. All other modules are in folders of it.
const rootModule = "github.com/crdcache/crdcache"

// publishedFolders are the folders of the published modules. Each requires only earlier ones.
var publishedFolders = []string{".", "adapters/cel", "adapters/metrics", "adapters/controllerruntime",
	"cmd/crdcache", "serving/server"}

// prepareRelease implements the command release.
func prepareRelease(_ context.Context, flags *flag.FlagSet, args []string) error {
	version := flags.String("version", "", "the version, such as v0.9.0")
	root := flags.String("root", ".", "the folder of the repository")
	develop := flags.Bool("develop", false, "replace the modules by their folders, for the commit after the tag")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r, err := newRelease(*root, *version)
	if err != nil {
		return err
	}
	if *develop {
		return r.writeReplaceLines()
	}
	return r.publish()
}

// release is a version of the modules in a work tree.
type release struct {
	root, version string
	modules       []*publishedModule
	// sums are the lines of go.sum for the rendered modules.
	sums []string
}

// publishedModule is a module without replace lines.
type publishedModule struct {
	folder string
	path   string
	goMod  []byte
	goSum  []byte
	zip    []byte
}

func pathOf(folder string) string { return path.Join(rootModule, folder) }

func isOwnModule(modulePath string) bool {
	return modulePath == rootModule || strings.HasPrefix(modulePath, rootModule+"/")
}

// newRelease renders the modules of the work tree in root.
func newRelease(root, version string) (*release, error) {
	if !semver.IsValid(version) || semver.Canonical(version) != version {
		return nil, fmt.Errorf("%q is not a version such as v0.9.0", version)
	}
	temporary, err := os.MkdirTemp("", "release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temporary)
	if err := copyTracked(root, filepath.Join(temporary, "tree")); err != nil {
		return nil, err
	}
	r := &release{root: root, version: version}
	for _, folder := range publishedFolders {
		m, err := r.renderModule(folder, temporary)
		if err != nil {
			return nil, fmt.Errorf("module %s: %w", folder, err)
		}
		r.modules = append(r.modules, m)
	}
	return r, nil
}

// trackedFiles returns the files that git tracks, or would track, with slashes.
func trackedFiles(root string) ([]string, error) {
	command := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "-z")
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	return strings.Split(strings.Trim(string(out), "\x00"), "\x00"), nil
}

// copyTracked copies the tracked files that are in a work tree.
func copyTracked(root, tree string) error {
	files, err := trackedFiles(root)
	if err != nil {
		return err
	}
	for _, name := range files {
		content, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted in the work tree
		}
		target := filepath.Join(tree, name)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(target), 0o755),
			os.WriteFile(target, content, 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// renderModule returns a module as it is published, and adds its sums. The folder tree in temporary has the
// tracked files. A module without a license gets the license of the repository, as when the go command
// fetches it from git.
func (r *release) renderModule(folder, temporary string) (*publishedModule, error) {
	m := &publishedModule{folder: folder, path: pathOf(folder)}
	var err error
	if m.goMod, err = r.goMod(folder, false); err != nil {
		return nil, err
	}
	if m.goSum, err = r.goSum(folder, m.goMod); err != nil {
		return nil, err
	}
	tree, zipPath := filepath.Join(temporary, "tree"), filepath.Join(temporary, "module.zip")
	if err := m.write(tree); err != nil {
		return nil, err
	}
	err = os.Link(filepath.Join(tree, "LICENSE"), filepath.Join(tree, folder, "LICENSE"))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	out, err := os.Create(zipPath)
	if err != nil {
		return nil, err
	}
	version := module.Version{Path: m.path, Version: r.version}
	err = zip.CreateFromDir(out, version, filepath.Join(tree, folder))
	if err = errors.Join(err, out.Close()); err != nil {
		return nil, err
	}
	if m.zip, err = os.ReadFile(zipPath); err != nil {
		return nil, err
	}
	return m, r.addSums(m, zipPath)
}

// write writes go.mod and go.sum to the module's folder in a tree.
func (m *publishedModule) write(tree string) error {
	folder := filepath.Join(tree, m.folder)
	return errors.Join(os.WriteFile(filepath.Join(folder, "go.mod"), m.goMod, 0o644),
		os.WriteFile(filepath.Join(folder, "go.sum"), m.goSum, 0o644))
}

// goMod returns the go.mod of a folder that requires the release of the project's modules. With replace, it
// replaces them by their folders.
func (r *release) goMod(folder string, replace bool) ([]byte, error) {
	name := filepath.Join(r.root, folder, "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f, err := modfile.Parse(name, text, nil)
	if err != nil {
		return nil, err
	}
	for _, replaced := range slices.Clone(f.Replace) {
		if isOwnModule(replaced.Old.Path) {
			if err := f.DropReplace(replaced.Old.Path, replaced.Old.Version); err != nil {
				return nil, err
			}
		}
	}
	for _, required := range f.Require {
		if !isOwnModule(required.Mod.Path) {
			continue
		}
		if err := f.AddRequire(required.Mod.Path, r.version); err != nil {
			return nil, err
		}
		if !replace {
			continue
		}
		target, err := filepath.Rel(pathOf(folder), required.Mod.Path)
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(target, ".") {
			target = "./" + target
		}
		if err := f.AddReplace(required.Mod.Path, "", filepath.ToSlash(target), ""); err != nil {
			return nil, err
		}
	}
	f.SortBlocks()
	f.Cleanup()
	return f.Format()
}

// goSum returns the go.sum of a folder with the sums of our modules that its go.mod requires.
func (r *release) goSum(folder string, goMod []byte) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(r.root, folder, "go.sum"))
	if err != nil {
		return nil, err
	}
	lines := slices.DeleteFunc(strings.SplitAfter(string(text), "\n"), func(line string) bool {
		name, _, _ := strings.Cut(line, " ")
		return line == "" || isOwnModule(name)
	})
	f, err := modfile.ParseLax("go.mod", goMod, nil)
	if err != nil {
		return nil, err
	}
	for _, sum := range r.sums {
		name, _, _ := strings.Cut(sum, " ")
		if slices.ContainsFunc(f.Require,
			func(required *modfile.Require) bool { return required.Mod.Path == name }) {
			lines = append(lines, sum)
		}
	}
	slices.SortStableFunc(lines, compareSums)
	return []byte(strings.Join(lines, "")), nil
}

// compareSums orders lines of go.sum like the go command: by module and version.
func compareSums(a, b string) int {
	aFields, bFields := strings.Fields(a), strings.Fields(b)
	if c := strings.Compare(aFields[0], bFields[0]); c != 0 {
		return c
	}
	aVersion, aFile, _ := strings.Cut(aFields[1], "/")
	bVersion, bFile, _ := strings.Cut(bFields[1], "/")
	if c := semver.Compare(aVersion, bVersion); c != 0 {
		return c
	}
	return strings.Compare(aFile, bFile)
}

// addSums adds the lines of go.sum for a rendered module.
func (r *release) addSums(m *publishedModule, zipPath string) error {
	content, err := dirhash.HashZip(zipPath, dirhash.Hash1)
	if err != nil {
		return err
	}
	goMod, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(m.goMod)), nil
	})
	if err != nil {
		return err
	}
	r.sums = append(r.sums, fmt.Sprintf("%s %s %s\n", m.path, r.version, content),
		fmt.Sprintf("%s %s/go.mod %s\n", m.path, r.version, goMod))
	return nil
}

// publish writes the go.mod and go.sum files to tag.
func (r *release) publish() error {
	if err := r.writeReplaceLines(); err != nil { // resets the unpublished modules
		return err
	}
	for _, m := range r.modules {
		if err := m.write(r.root); err != nil {
			return err
		}
	}
	return nil
}

// writeReplaceLines writes all go.mod files so that modules replace each other by their folders, and removes
// our sums.
func (r *release) writeReplaceLines() error {
	files, err := trackedFiles(r.root)
	if err != nil {
		return err
	}
	for _, name := range files {
		folder := path.Dir(name)
		if path.Base(name) != "go.mod" || folder == "." {
			continue
		}
		goMod, err := r.goMod(folder, true)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.root, name), goMod, 0o644); err != nil {
			return err
		}
		if !slices.Contains(publishedFolders, folder) {
			continue
		}
		goSum, err := (&release{root: r.root}).goSum(folder, nil)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.root, folder, "go.sum"), goSum, 0o644); err != nil {
			return err
		}
	}
	return nil
}
