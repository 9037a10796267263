package disk

import (
	"bufio"
	"crypto/rand"
	"errors"
	"io"

	"github.com/crdcache/crdcache/adapters/storage/block"
)

// logFile is the valid part of a log: everything up to the last valid checkpoint. The rest was being written
// when the process or the machine ended, or is damaged.
type logFile struct {
	block.Header
	// Checkpoint is the text of the last checkpoint.
	Checkpoint []byte
	// End is the offset after it.
	End int64
	// First is the size of everything up to the first checkpoint, which follows the whole content.
	First int64
	// HasOldKey reports whether a frame is encrypted with another key than the first.
	HasOldKey bool

	source io.ReaderAt
	cipher block.Cipher
	frames []extent // of the valid records, without checkpoints
}

type extent struct{ offset, size int64 }

// readLogFile checks a log of size bytes. A log without a valid checkpoint is damaged.
func readLogFile(source io.ReaderAt, size int64, c block.Cipher) (*logFile, error) {
	header, err := block.ReadHeader(source, size)
	if err != nil {
		return nil, err
	}
	if header.Form != block.Log {
		return nil, block.Damaged(0, "it is not a log")
	}
	l := &logFile{Header: header, source: source, cipher: c}
	var buffer []byte
	var pending []extent
	isOld := false
	for offset := int64(block.HeaderSize); ; {
		var record []byte
		var isCurrent bool
		e := extent{offset: offset}
		if e.size, err = l.frameSizeAt(offset, size); err == nil {
			record, isCurrent, err = l.read(e, &buffer)
		}
		if err != nil {
			break
		}
		offset += e.size
		isOld = isOld || !isCurrent
		if block.Kind(record[0]) != block.Checkpoint {
			pending = append(pending, e)
			continue
		}
		text, err := block.ReadText(block.Checkpoint, record)
		if err != nil {
			return nil, block.Damaged(e.offset, "%v", err)
		}
		l.frames, l.Checkpoint, l.End = append(l.frames, pending...), append([]byte(nil), text...), offset
		pending, l.HasOldKey = pending[:0], isOld
		if l.First == 0 {
			l.First = offset
		}
	}
	if damage := new(block.FormatError); errors.As(err, &damage) && l.Checkpoint != nil {
		return l, nil
	}
	return nil, err
}

// frameSizeAt returns the size of the frame at an offset.
func (l *logFile) frameSizeAt(offset, fileSize int64) (int64, error) {
	var header [block.FrameHeader]byte
	if err := block.ReadAt(l.source, header[:], offset); err != nil {
		return 0, err
	}
	size, ok := block.FrameSize(header[:])
	if !ok || size > fileSize-offset {
		return 0, block.Damaged(offset, "a frame is incomplete")
	}
	return size, nil
}

// read returns the record of a frame. It is valid until the next call with the buffer.
func (l *logFile) read(e extent, buffer *[]byte) (record []byte, isCurrent bool, err error) {
	if int64(cap(*buffer)) < e.size {
		*buffer = make([]byte, e.size)
	}
	frame := (*buffer)[:e.size]
	if err := block.ReadAt(l.source, frame, e.offset); err != nil {
		return nil, false, err
	}
	return l.ParseFrame(frame, e.offset, l.cipher)
}

// Records calls onRecord for each record but checkpoints, in the order of the file. A record is valid until
// onRecord returns.
func (l *logFile) Records(onRecord func(offset int64, record []byte) error) error {
	var buffer []byte
	for _, e := range l.frames {
		record, _, err := l.read(e, &buffer)
		if err == nil {
			err = onRecord(e.offset, record)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// logWriter appends records to a log.
type logWriter struct {
	block.Header
	out    *bufio.Writer
	cipher block.Cipher
	offset int64
	frame  []byte
	record []byte
}

// newLog begins a log that is written to out.
func newLog(out io.Writer, c block.Cipher) (*logWriter, error) {
	h := block.Header{Form: block.Log}
	_, _ = rand.Read(h.ID[:]) // never fails
	w := appendLog(out, h, int64(block.HeaderSize), c)
	_, err := w.out.Write(h.Append(nil))
	return w, err
}

// appendLog returns a writer that continues a log at an offset.
func appendLog(out io.Writer, h block.Header, offset int64, c block.Cipher) *logWriter {
	return &logWriter{Header: h, out: bufio.NewWriterSize(out, 256<<10), cipher: c, offset: offset}
}

// Put appends a record.
func (w *logWriter) Put(record []byte) error {
	w.frame = w.AppendFrame(w.frame[:0], record, w.offset, w.cipher)
	w.offset += int64(len(w.frame))
	_, err := w.out.Write(w.frame)
	return err
}

// Commit appends a checkpoint and flushes.
func (w *logWriter) Commit(text []byte) (err error) {
	if w.record, err = block.AppendText(w.record[:0], block.Checkpoint, text, nil); err != nil {
		return err
	}
	return errors.Join(w.Put(w.record), w.out.Flush())
}

// End returns the offset after the last record.
func (w *logWriter) End() int64 { return w.offset }
