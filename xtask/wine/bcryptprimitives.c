/*
 * The one function that programs in Rust need of Windows' bcryptprimitives.dll, which Wine before 9.0 lacks: random
 * bytes, asked from advapi32, where Wine has them. Only for tests under Wine.
 */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID bytes, ULONG size);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T size)
{
    const ULONG piece = 1 << 20;
    for (SIZE_T done = 0; done < size; done += piece) {
        ULONG wanted = size - done < piece ? (ULONG)(size - done) : piece;
        if (!SystemFunction036(bytes + done, wanted))
            return FALSE;
    }
    return TRUE;
}
