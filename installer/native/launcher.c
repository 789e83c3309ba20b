/* One native program per way into fleetapp. It loads the interpreter that lies beside it into its
 * own process, so that name, icon, version and signature in the task manager are ours.
 *
 * ENTRY is the script below app\ that is run, or nothing: then the program is the interpreter
 * itself, which the scripts name as sys.executable and which everything else is started with.
 *
 * Compiled bytecode goes to the user's cache, never into the program folder: that may be read-only,
 * and what was installed stays as it was signed.
 */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

#define LONGEST 32768 /* of any path or variable on Windows */

typedef int (*py_main)(int, wchar_t **);

static wchar_t folder[LONGEST], python[LONGEST], library[LONGEST];
static wchar_t bytecode[LONGEST + 64] = L"pycache_prefix=";

static int refuse(const wchar_t *what)
{
    wchar_t text[1024];
    _snwprintf(text, 1023, L"fleetapp cannot start: %ls (error %lu).\n\nInstall it again.", what,
               GetLastError());
    text[1023] = 0;
#ifdef CONSOLE
    fwprintf(stderr, L"%ls\n", text);
#else
    if (ENTRY[0])
        MessageBoxW(0, text, L"fleetapp", MB_ICONERROR | MB_SETFOREGROUND);
#endif
    return 9;
}

static int cache_folder(void)
{
    DWORD at = (DWORD)wcslen(bytecode);
    DWORD got = GetEnvironmentVariableW(L"LOCALAPPDATA", bytecode + at, LONGEST - at);
    if (!got || got >= LONGEST - at)
        return 0;
    wcscat(bytecode, L"\\fleetapp\\cache\\python");
    return 1;
}

int wmain(int argc, wchar_t **argv)
{
    wchar_t *end;
    DWORD size = GetModuleFileNameW(0, folder, LONGEST);
    if (!size || size >= LONGEST - 64 || !(end = wcsrchr(folder, L'\\')))
        return refuse(L"its own folder is unknown");
    *end = 0;
    wcscpy(python, folder);
    wcscat(python, L"\\python");
    wcscpy(library, python);
    wcscat(library, L"\\python312.dll");

    /* Never the current folder. What Windows searches otherwise stays as python.exe has it: drivers
     * of graphics and neural processors look for their own parts in ways of their own. */
    SetDllDirectoryW(L"");
    AddDllDirectory(python);
    if (!ENTRY[0]) /* a driver that fails in a runner must not put a box on somebody's screen */
        SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX);

    HMODULE loaded = LoadLibraryExW(
        library, 0, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS | LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR);
    if (!loaded)
        return refuse(L"python\\python312.dll cannot be loaded");
    py_main run = (py_main)(void *)GetProcAddress(loaded, "Py_Main");
    if (!run)
        return refuse(L"python\\python312.dll is damaged");

    wchar_t **full = calloc((size_t)argc + 8, sizeof *full);
    wchar_t *script = calloc(LONGEST, sizeof *script);
    if (!full || !script)
        return refuse(L"there is no memory");
    int count = 0;
    full[count++] = argv[0];
    full[count++] = L"-X";
    full[count++] = L"utf8";
    if (cache_folder()) {
        full[count++] = L"-X";
        full[count++] = bytecode;
    }
    if (ENTRY[0]) {
        wcscpy(script, folder);
        wcscat(script, L"\\app\\" ENTRY);
        full[count++] = script;
    }
    for (int i = 1; i < argc; i++)
        full[count++] = argv[i];
    return run(count, full);
}

#ifndef CONSOLE
int WINAPI wWinMain(HINSTANCE a, HINSTANCE b, PWSTR c, int d)
{
    (void)a, (void)b, (void)c, (void)d;
    return wmain(__argc, __wargv);
}
#endif
