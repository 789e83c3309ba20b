; The per-user installer. No administrator rights, nothing outside the user's own profile.
; Built by installer/nsis.py, which defines STAGE, OUT, VERSION, QUAD, ICON, LICENSE, SIZE_KB and NAME.
;
;   /S                no window at all
;   /NOAUTOSTART      not started at login (at a first install; an upgrade keeps the user's choice)
;   /JOINCODE=CODE    joins that fleet at its first start
;   /NOSTART          silent: do not start the app (a silent first install does not anyway)
;   /D=FOLDER         where; must be last and without quotation marks
; Uninstall.exe: /S, /REMOVEDATA (identity, models, chats, settings; kept otherwise)
;
; Exit codes: 0 done, 1 cancelled, 2 failed while writing, 3 the running app could not be ended,
; 4 no room, 5 this Windows is too old or not 64-bit. See docs/install.md.

Unicode true
Target amd64-unicode
!ifdef STORE
  SetCompress off
!else ifdef FAST
  SetCompressor zlib
!else
  SetCompressor /SOLID lzma
  SetCompressorDictSize 64
!endif
ManifestDPIAware true
ManifestSupportedOS all
RequestExecutionLevel user
AllowSkipFiles off
CRCCheck force
!uninstfinalize '"${SIGN}" "%1"'

!include MUI2.nsh
!include FileFunc.nsh
!include LogicLib.nsh
!include WinVer.nsh
!include x64.nsh

!define CODE_RUNNING 3
!define CODE_NO_ROOM 4
!define CODE_TOO_OLD 5
!define TRAY_WAS_RUNNING 10

!define UKEY "Software\Microsoft\Windows\CurrentVersion\Uninstall\${NAME}"
!define RKEY "Software\Microsoft\Windows\CurrentVersion\Run"
!define AKEY "Software\Microsoft\Windows\CurrentVersion\Explorer\StartupApproved\Run"
!define OWN "Software\${NAME}"

Name "${NAME}"
OutFile "${OUT}"
InstallDir "$LOCALAPPDATA\Programs\${NAME}"
InstallDirRegKey HKCU "${OWN}" "InstallDir"
BrandingText "${NAME} ${VERSION}"
VIProductVersion "${QUAD}"
VIAddVersionKey "ProductName" "${NAME}"
VIAddVersionKey "ProductVersion" "${VERSION}"
VIAddVersionKey "FileVersion" "${VERSION}"
VIAddVersionKey "FileDescription" "${NAME} Setup"
VIAddVersionKey "CompanyName" "The fleetapp authors"
VIAddVersionKey "LegalCopyright" "The fleetapp authors. Apache-2.0."

!define MUI_ICON "${ICON}"
!define MUI_UNICON "${ICON}"
!insertmacro MUI_PAGE_WELCOME
!insertmacro MUI_PAGE_LICENSE "${LICENSE}"
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!define MUI_FINISHPAGE_RUN "$INSTDIR\FleetApp.exe"
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"
!insertmacro MUI_LANGUAGE "German"

LangString TooOld ${LANG_ENGLISH} "${NAME} needs 64-bit Windows 10 (1809) or newer."
LangString TooOld ${LANG_GERMAN} "${NAME} braucht Windows 10 (1809) oder neuer mit 64 Bit."
LangString StillRunning ${LANG_ENGLISH} "${NAME} is running and could not be ended. Quit it from its icon and try again."
LangString StillRunning ${LANG_GERMAN} "${NAME} läuft und ließ sich nicht beenden. Beenden Sie es über sein Symbol und versuchen Sie es noch einmal."
LangString NoRoom ${LANG_ENGLISH} "There is not enough room for ${NAME} in $INSTDIR. Nothing was changed."
LangString NoRoom ${LANG_GERMAN} "Für ${NAME} ist in $INSTDIR nicht genug Platz. Es wurde nichts geändert."
LangString RemoveData ${LANG_ENGLISH} "Remove this PC's identity, models, chats and settings too?$\n$\nIf you keep them, a later installation goes on where this one ended."
LangString RemoveData ${LANG_GERMAN} "Auch Identität, Modelle, Unterhaltungen und Einstellungen dieses PCs entfernen?$\n$\nWenn Sie sie behalten, macht eine spätere Installation dort weiter."

Var Restart
Var Upgrade

; What is running has to go before its files can. $INSTDIR is only trusted if our program lies in it.
!macro StopApp UN
  Function ${UN}StopApp
    StrCpy $Restart "0"
    ${IfNot} ${FileExists} "$INSTDIR\fleetapp-cli.exe"
      Return
    ${EndIf}
    DetailPrint "Ending ${NAME}"
    nsExec::Exec '"$INSTDIR\fleetapp-cli.exe" setup stop'
    Pop $0
    ${If} $0 == ${TRAY_WAS_RUNNING}
      StrCpy $Restart "1"
    ${EndIf}
  FunctionEnd

  Function ${UN}SetAside
    ; Whether it is true: a folder that is in use cannot be renamed.
    ClearErrors
    Rename "$INSTDIR\python" "$INSTDIR\python.old"
    ${If} ${Errors}
      ${If} ${FileExists} "$INSTDIR\python"
        IfSilent +2
          MessageBox MB_OK|MB_ICONSTOP "$(StillRunning)"
        SetErrorLevel ${CODE_RUNNING}
        Quit
      ${EndIf}
    ${EndIf}
  FunctionEnd
!macroend
!insertmacro StopApp ""
!insertmacro StopApp "un."

Function .onInit
  ${IfNot} ${RunningX64}
  ${OrIfNot} ${AtLeastBuild} 17763
    IfSilent +2
      MessageBox MB_OK|MB_ICONSTOP "$(TooOld)"
    SetErrorLevel ${CODE_TOO_OLD}
    Quit
  ${EndIf}
  SetShellVarContext current
  SetRegView 64
FunctionEnd

Function .onInstFailed
  ; What was there before is better than half of what should be there now.
  ${If} ${FileExists} "$INSTDIR\python.old"
    RMDir /r "$INSTDIR\python"
    Rename "$INSTDIR\python.old" "$INSTDIR\python"
  ${EndIf}
  ${If} ${FileExists} "$INSTDIR\app.old"
    RMDir /r "$INSTDIR\app"
    Rename "$INSTDIR\app.old" "$INSTDIR\app"
  ${EndIf}
FunctionEnd

Section "${NAME}"
  SetOverwrite on
  ReadRegStr $Upgrade HKCU "${UKEY}" "DisplayVersion"

  ; Asked of the folder, not of the drive's letter: another disk may be mounted in between.
  StrCpy $0 "$INSTDIR"
  ${DoUntil} ${FileExists} "$0\*.*"
    ${GetParent} "$0" $0
    ${If} $0 == ""
      ${ExitDo}
    ${EndIf}
  ${Loop}
  System::Call 'kernel32::GetDiskFreeSpaceExW(w "$0\", *l .r1, p 0, p 0) i .r2'
  System::Int64Op $1 / 1048576
  Pop $1
  ${If} $2 <> 0
  ${AndIf} $1 < ${SIZE_MB}
    IfSilent +2
      MessageBox MB_OK|MB_ICONSTOP "$(NoRoom)"
    SetErrorLevel ${CODE_NO_ROOM}
    Quit
  ${EndIf}

  Call StopApp
  Call SetAside
  RMDir /r "$INSTDIR\app.old"
  Rename "$INSTDIR\app" "$INSTDIR\app.old"
  RMDir /r "$INSTDIR\licenses"
  SetOutPath "$INSTDIR"
  File /r "${STAGE}/*"
  WriteUninstaller "$INSTDIR\Uninstall.exe"
  RMDir /r "$INSTDIR\python.old"
  RMDir /r "$INSTDIR\app.old"

  CreateDirectory "$SMPROGRAMS"
  CreateShortcut "$SMPROGRAMS\${NAME}.lnk" "$INSTDIR\FleetApp.exe"
  WriteRegStr HKCU "${OWN}" "InstallDir" "$INSTDIR"
  WriteRegStr HKCU "${UKEY}" "DisplayName" "${NAME}"
  WriteRegStr HKCU "${UKEY}" "DisplayVersion" "${VERSION}"
  WriteRegStr HKCU "${UKEY}" "DisplayIcon" "$INSTDIR\FleetApp.exe"
  WriteRegStr HKCU "${UKEY}" "Publisher" "The fleetapp authors"
  WriteRegStr HKCU "${UKEY}" "InstallLocation" "$INSTDIR"
  WriteRegStr HKCU "${UKEY}" "UninstallString" '"$INSTDIR\Uninstall.exe"'
  WriteRegStr HKCU "${UKEY}" "QuietUninstallString" '"$INSTDIR\Uninstall.exe" /S'
  WriteRegDWORD HKCU "${UKEY}" "EstimatedSize" ${SIZE_KB}
  WriteRegDWORD HKCU "${UKEY}" "NoModify" 1
  WriteRegDWORD HKCU "${UKEY}" "NoRepair" 1

  ${GetParameters} $R0
  ClearErrors
  ${GetOptions} $R0 "/NOAUTOSTART" $R1
  ${If} ${Errors}
    ${If} $Upgrade == "" ; an upgrade leaves the user's choice alone
      WriteRegStr HKCU "${RKEY}" "${RUN_NAME}" '"$INSTDIR\FleetApp.exe"'
    ${EndIf}
  ${Else}
    DeleteRegValue HKCU "${RKEY}" "${RUN_NAME}"
  ${EndIf}

  ; Read once by the agent at its next start, and deleted by it.
  ClearErrors
  ${GetOptions} $R0 "/JOINCODE=" $R1
  ${IfNot} ${Errors}
    CreateDirectory "$LOCALAPPDATA\fleetapp"
    FileOpen $0 "$LOCALAPPDATA\fleetapp\join-code" w
    FileWrite $0 "$R1$\r$\n"
    FileClose $0
  ${EndIf}

  ClearErrors
  ${GetOptions} $R0 "/NOSTART" $R1
  ${If} ${Errors}
  ${AndIf} $Restart == "1"
    Exec '"$INSTDIR\FleetApp.exe"'
  ${EndIf}
  SetErrorLevel 0
SectionEnd

Function un.onInit
  SetShellVarContext current
  SetRegView 64
FunctionEnd

Section "Uninstall"
  ${IfNot} ${FileExists} "$INSTDIR\fleetapp-worker.exe"
    SetErrorLevel 2 ; not our folder: remove nothing
    Quit
  ${EndIf}
  ${GetParameters} $R0
  ClearErrors
  ${GetOptions} $R0 "/REMOVEDATA" $R1
  ${If} ${Errors}
    StrCpy $R2 ""
    ${IfNot} ${Silent}
      MessageBox MB_YESNO|MB_DEFBUTTON2|MB_ICONQUESTION "$(RemoveData)" IDNO +2
        StrCpy $R2 "--data"
    ${EndIf}
  ${Else}
    StrCpy $R2 "--data"
  ${EndIf}

  Call un.StopApp
  nsExec::Exec '"$INSTDIR\fleetapp-cli.exe" setup clean $R2'
  Pop $0
  Call un.SetAside
  RMDir /r "$INSTDIR\python.old"
  RMDir /r "$INSTDIR\app"
  RMDir /r "$INSTDIR\licenses"
  Delete "$INSTDIR\sbom.cdx.json"
  Delete "$INSTDIR\FleetApp.exe"
  Delete "$INSTDIR\fleetapp-cli.exe"
  Delete "$INSTDIR\fleetapp-worker.exe"
  Delete "$INSTDIR\Uninstall.exe"
  RMDir "$INSTDIR"
  Delete "$SMPROGRAMS\${NAME}.lnk"
  DeleteRegValue HKCU "${RKEY}" "${RUN_NAME}"
  DeleteRegValue HKCU "${AKEY}" "${RUN_NAME}"
  DeleteRegKey HKCU "${UKEY}"
  DeleteRegKey HKCU "${OWN}"
  SetErrorLevel 0
SectionEnd
