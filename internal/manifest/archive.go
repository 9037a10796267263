package manifest

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Bounds of archives, which can be hostile.
const (
	maxMembers    = 1 << 20
	maxMemberName = 4096
	maxDepth      = 2         // an archive can contain archives, which contain none
	maxBufferSize = 256 << 20 // of an archive whose format needs random access
	// Decompressed data of more than freeSize is at most maxRatio times as large as the input.
	maxRatio = 200
	freeSize = 1 << 30
)

var (
	errTooManyMembers = fmt.Errorf("the archive has more than %d members", maxMembers)
	errTooDeep        = errors.New("an archive within two others is not read: unpack one of them")
	errRatio          = fmt.Errorf("the decompressed data is more than %d times as large as the file", maxRatio)
	errTrailing       = errors.New("other data follows the end of the archive: read it as a file of its own")
)

// ErrNotRead is the error of an entry that counts the members of an archive that are not read because of
// their names or kinds.
var ErrNotRead = errors.New("not read")

var archiveExtensions = []string{".tar", ".tgz", ".zip"}

// contentReader reads a text, or the texts in an archive.
type contentReader struct {
	ctx   context.Context
	yield func(Entry) bool
	// member is the path in the archive. It is empty, and depth is 0, outside of archives.
	member string
	depth  int
	path   string // of the text, if it is known
	// visit, if set, is called for texts in place of yield. In archives it selects those of wanted paths.
	visit  func(path string, text io.Reader) (more bool, err error)
	wanted func(path string) bool
	*archiveCounts
}

// archiveCounts are the counts of a file with all nested archives.
type archiveCounts struct {
	inputSize, decompressedSize int64
	members                     int
	skipped                     map[string]int // members that are not read, by the reason
	received                    *atomic.Int64
	stopped                     bool
}

var inputs = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, peekSize) }}

// read reads a file, or a member of an archive.
func (c *contentReader) read(r io.Reader) error {
	input := r
	if c.depth == 0 {
		input = &countingSizeReader{r, c.archiveCounts}
	}
	in := inputs.Get().(*bufio.Reader)
	defer inputs.Put(in)
	in.Reset(sourceReader{c.ctx, input})
	decompressed, err := decompress(in)
	if err != nil {
		return err
	}
	compressed := decompressed != nil
	if compressed {
		defer decompressed.Close()
		in = bufio.NewReaderSize(&boundedReader{sourceReader{c.ctx, decompressed}, c.archiveCounts}, peekSize)
	}
	head, readErr := in.Peek(tarBlock) // a failed read fails again
	isArchive := isTar(head) || bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06"))
	switch {
	case isArchive && c.depth == maxDepth:
		c.fail(errTooDeep)
		return nil
	case isTar(head):
		return c.readTar(in)
	case isArchive:
		if compressed {
			r = nil
		}
		return c.readZip(r, in)
	}
	if c.visit != nil {
		more, err := c.visit(c.path, in)
		c.stopped = !more
		return err
	}
	if err := binaryError(head); err != nil {
		if readErr != nil && !errors.Is(readErr, io.EOF) {
			return readErr
		}
		c.fail(err)
		return nil
	}
	return c.readText(utf8Text(in), compressed)
}

func (c *contentReader) readText(in *bufio.Reader, compressed bool) (err error) {
	name, hasErrors := collected(c.path)
	if hasErrors {
		return c.readErrors(in, name)
	}
	t := &documentReader{in: in, compressed: compressed, line: 1, collects: name,
		audit: auditLog{unknown: map[auditedObject]Entry{}}}
	hasAnswer := false
	t.yield = func(e Entry) bool {
		hasAnswer = hasAnswer || !errors.Is(e.Err, ErrNotObject)
		e.Member = c.member
		c.stopped = !c.yield(e) || c.ctx.Err() != nil
		return !c.stopped
	}
	for more := true; more && err == nil; {
		more, err = t.readDocument()
	}
	switch {
	case c.stopped:
	case name != "" && !hasAnswer && err == nil: // troubleshoot writes an empty file for a denied type
		t.yield(Entry{Err: &Note{Uncollected: name, Reason: "the file has no list of them"}})
	case t.document == 0 && !t.hasSeparator && err == nil:
		c.fail(errEmpty)
	default:
		t.audit.report(t.yield)
	}
	return err
}

// fail yields an error of the file or member.
func (c *contentReader) fail(err error) {
	c.stopped = !c.yield(Entry{Position: Position{Member: c.member}, Err: err})
}

// reportSkipped yields one error that counts the members that are not read.
func (c *contentReader) reportSkipped() {
	var counts []string
	for _, what := range slices.Sorted(maps.Keys(c.skipped)) {
		counts = append(counts, fmt.Sprintf("%d %s", c.skipped[what], what))
	}
	if len(counts) > 0 && !c.stopped {
		c.fail(fmt.Errorf("%w: %s", ErrNotRead, strings.Join(counts, "; ")))
	}
}

const tarBlock = 512

func isTar(head []byte) bool {
	_, err := tar.NewReader(bytes.NewReader(head)).Next() // verifies a checksum; zeros are io.EOF
	return len(head) == tarBlock && (err == nil || bytes.HasPrefix(head[257:], []byte("ustar")))
}

func (c *contentReader) readTar(in *bufio.Reader) error {
	blocks := &zeroCounter{Reader: in}
	archive := tar.NewReader(blocks)
	for {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF) && blocks.zeros >= tarBlock:
			return readTrailing(in)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return ErrTruncated
		case err != nil:
			return fmt.Errorf("read the archive: %w", err)
		}
		if err := c.readMember(header.Name, header.FileInfo().Mode(), header.Typeflag == tar.TypeLink,
			func() (io.ReadCloser, error) { return io.NopCloser(archive), nil }); err != nil || c.stopped {
			return err
		}
	}
}

// zeroCounter counts the zero bytes at the end of the read bytes. An archive ends with zeros.
type zeroCounter struct {
	io.Reader
	zeros int
}

func (r *zeroCounter) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	rest := len(bytes.TrimRight(p[:n], "\x00"))
	if rest > 0 {
		r.zeros = 0
	}
	r.zeros += n - rest
	return n, err
}

// maxPadding is the largest accepted padding after an archive. GNU tar writes 10 KiB by default.
const maxPadding = 1 << 20

// readTrailing reads the padding after an archive, so that compressed data is verified to its end.
func readTrailing(in *bufio.Reader) error {
	for range maxPadding {
		switch padding, err := in.ReadByte(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case padding != 0:
			return errTrailing
		}
	}
	return errTrailing
}

// readZip reads an archive from r if that has random access, and otherwise buffers it.
func (c *contentReader) readZip(r io.Reader, in *bufio.Reader) error {
	source, isRandom := r.(io.ReaderAt)
	seeker, isSeeker := r.(io.Seeker)
	var size int64
	if isRandom && isSeeker {
		var err error
		if size, err = seeker.Seek(0, io.SeekEnd); err != nil {
			return err
		}
		c.inputSize = max(c.inputSize, size)
	} else {
		data, err := io.ReadAll(io.LimitReader(in, maxBufferSize+1))
		switch {
		case err != nil:
			return err
		case len(data) > maxBufferSize:
			return fmt.Errorf("a zip archive of more than %d MiB can only be read from a file: write it to one",
				maxBufferSize>>20)
		}
		source, size = bytes.NewReader(data), int64(len(data))
	}
	archive, err := zip.NewReader(source, size)
	if errors.Is(err, zip.ErrFormat) { // the directory is at the end
		err = ErrTruncated
	}
	if err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	if len(archive.File) == 0 {
		c.fail(errEmpty)
	}
	for _, f := range archive.File {
		open := func() (io.ReadCloser, error) {
			if f.Flags&1 != 0 {
				return nil, errors.New("the file is encrypted: unpack the archive")
			}
			member, err := f.Open()
			if err != nil {
				return nil, err
			}
			return struct {
				io.Reader
				io.Closer
			}{&boundedReader{member, c.archiveCounts}, member}, nil
		}
		if err := c.readMember(f.Name, f.Mode(), false, open); err != nil || c.stopped {
			return err
		}
	}
	return nil
}

// readMember reads a member that is a manifest or an archive, and counts any other. It yields errors.
func (c *contentReader) readMember(name string, mode fs.FileMode, isLink bool,
	open func() (io.ReadCloser, error)) error {
	if c.members++; c.members > maxMembers {
		return errTooManyMembers
	}
	name = path.Clean("/" + strings.ReplaceAll(name, `\`, "/"))[1:]
	isHidden := slices.ContainsFunc(strings.Split(name, "/"),
		func(element string) bool { return strings.HasPrefix(element, ".") })
	switch {
	case mode.IsDir() || isHidden:
		return nil
	case isLink || mode.Type() == fs.ModeSymlink:
		c.skipped["links"]++
		return nil
	case !mode.IsRegular():
		c.skipped["members that are no files"]++
		return nil
	case len(name) > maxMemberName, !isRead(path.Join(c.member, name), c.wanted):
		c.skipped[otherNames]++
		return nil
	}
	inner := *c
	inner.member, inner.depth = path.Join(c.member, name), c.depth+1
	inner.path = inner.member
	r, err := open()
	if err == nil {
		defer r.Close()
		err = inner.read(r)
	}
	if err != nil && !errors.Is(err, errRatio) && !errors.Is(err, errTooManyMembers) && c.ctx.Err() == nil {
		inner.fail(err) // an error of the archive itself comes again
		err = nil
	}
	return err
}

// VisitTexts calls visit with the path and content of each file that a path names, and of those in
// directories and archives that are wanted, until visit returns false. Paths have slashes.
func VisitTexts(ctx context.Context, paths []string, wanted func(path string) bool,
	visit func(path string, text io.Reader) (more bool, err error)) error {
	listing, err := List(ctx, paths,
		ListOptions{Wanted: func(at string) bool { return wanted(filepath.ToSlash(at)) }})
	if err != nil {
		return err
	}
	for _, f := range listing.Files {
		if f.Path == Stdin {
			continue // it was read
		}
		in, err := f.Open(ctx, nil)
		if err != nil {
			return err
		}
		c := &contentReader{ctx: ctx, yield: func(Entry) bool { return true }, path: filepath.ToSlash(f.Path),
			visit: visit, wanted: wanted, archiveCounts: &archiveCounts{skipped: map[string]int{}}}
		err = errors.Join(c.read(in), in.Close())
		if err != nil || c.stopped {
			return err
		}
	}
	return ctx.Err()
}

type countingSizeReader struct {
	io.Reader
	counts *archiveCounts
}

func (r *countingSizeReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.counts.inputSize += int64(n)
	if r.counts.received != nil {
		r.counts.received.Add(int64(n))
	}
	return n, err
}

// boundedReader reads decompressed data until its size is implausible.
type boundedReader struct {
	io.Reader
	counts *archiveCounts
}

func (r *boundedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.counts.decompressedSize += int64(n)
	if r.counts.decompressedSize > freeSize+maxRatio*r.counts.inputSize {
		return n, errRatio
	}
	return n, err
}
