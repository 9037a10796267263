package block_test

import (
	"fmt"

	"github.com/crdcache/crdcache/internal/block"
)

// A frame of a record is read at the place where it was written, and nowhere else.
func Example() {
	record, err := block.AppendText(nil, block.Changes, []byte("some changes"), nil)
	if err != nil {
		fmt.Println(err)
	}
	header := block.Header{Form: block.LogForm}
	frame := header.AppendFrame(nil, record, 32, nil)
	record, _, err = header.ParseFrame(frame, 32, nil)
	if err != nil {
		fmt.Println(err)
	}
	text, err := block.ReadText(block.Changes, record)
	fmt.Printf("%s, %v\n", text, err)
	_, _, err = header.ParseFrame(frame, 99, nil)
	fmt.Println(err)
	// Output:
	// some changes, <nil>
	// at byte 99: invalid checksum of a block; copy or save it again
}
