//go:build clockjumps

#include "textflag.h"

#define SYS_clock_gettime 228

// shifted has the calling convention of C: it is called with a clock in DI and the address of a time in SI, and keeps what
// a function of C has to keep.
TEXT ·shifted(SB), NOSPLIT|NOFRAME, $0-0
	PUSHQ DI
	PUSHQ SI
	SUBQ  $8, SP // aligns it
	MOVQ  ·kernels(SB), AX
	TESTQ AX, AX
	JEQ   system
	CALL  AX
	JMP   read

system:
	MOVQ $SYS_clock_gettime, AX
	SYSCALL

read:
	ADDQ  $8, SP
	POPQ  SI
	POPQ  DI
	TESTL DI, DI // CLOCK_REALTIME is 0
	JNE   done
	MOVQ  ·offset(SB), CX
	ADDQ  CX, 0(SI)

done:
	RET

// func shiftedAddress() uintptr
TEXT ·shiftedAddress(SB), NOSPLIT, $0-8
	LEAQ ·shifted(SB), AX
	MOVQ AX, ret+0(FP)
	RET
